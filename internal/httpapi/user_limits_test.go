package httpapi

import (
	"errors"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestUserLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(200, "[]", "GET", "user-limits", "")
	f.want(204, "", "PUT", "user-limits/guest/max-channels", `{"value":7}`)
	f.want(204, "", "PUT", "user-limits/guest/max-connections", `{"value":-1}`)
	f.want(400, `max-queues\"\u003e\u003e,1}] in user-limits`, "PUT", "user-limits/guest/max-queues", `{"value":1}`)
	f.want(400, "max-channels should be a number, actually was ", "PUT", "user-limits/guest/max-channels", `{"value":"7"}`)
	f.want(400, "max-channels should be an integer, actually was 1.5", "PUT", "user-limits/guest/max-channels", `{"value":1.5}`)
	f.want(400, "{key_missing,value}", "PUT", "user-limits/guest/max-channels", `{}`)
	f.want(400, "no_such_user: nobody", "PUT", "user-limits/nobody/max-channels", `{"value":1}`)
	f.want(400, "no_such_user: nobody", "DELETE", "user-limits/nobody/max-channels", "")
	f.want(404, "Object Not Found", "GET", "user-limits/nobody", "")
	f.want(200, `[{"user":"guest","value":{"max-channels":7,"max-connections":-1}}]`, "GET", "user-limits", "")
	f.want(200, "[]", "GET", "user-limits/management", "")

	// Another password or other tags leave them.
	f.want(204, "", "PUT", "users/guest", `{"password":"guest","tags":"administrator"}`)
	f.want(200, `"limits":{"max-channels":7,"max-connections":-1}`, "GET", "users/guest", "")
	f.want(204, "", "DELETE", "user-limits/guest/max-connections", "")
	f.want(200, `[{"user":"guest","value":{"max-channels":7}}]`, "GET", "user-limits/guest", "")

	own := f.as("management")
	own.want(200, "[]", "GET", "user-limits/management", "")
	own.want(401, "not_authorised", "GET", "user-limits/guest", "")
	own.want(401, "not_authorised", "GET", "user-limits", "")
	own.want(401, "not_authorised", "PUT", "user-limits/management/max-channels", `{"value":1}`)
}

func TestUserLimitsCountForAMQP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(204, "", "PUT", "user-limits/guest/max-channels", `{"value":2}`)
	f.want(204, "", "PUT", "user-limits/guest/max-connections", `{"value":2}`)
	one, other := f.connect("guest", "/"), f.connect("guest", "/")
	_, err := amqp.Dial("amqp://guest:guest@" + f.addr)
	wantRefused(t, err, "connection refused for user 'guest': user connection limit (2) is reached")
	first, err := one.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Channel(); err != nil {
		t.Fatal(err)
	}
	// One that is closed counts no more.
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Channel(); err != nil {
		t.Fatal(err)
	}
	_, err = other.Channel()
	wantRefused(t, err, "number of channels opened for user 'guest' has reached the maximum allowed user limit of (2)")
	f.want(204, "", "DELETE", "user-limits/guest/max-channels", "")
	f.want(204, "", "DELETE", "user-limits/guest/max-connections", "")
	if _, err := one.Channel(); err != nil {
		t.Errorf("a channel without a limit: %v", err)
	}
}

func wantRefused(t *testing.T, err error, text string) {
	t.Helper()
	var refused *amqp.Error
	if !errors.As(err, &refused) || refused.Code != amqp.NotAllowed || !strings.Contains(refused.Reason, text) {
		t.Errorf("got %v, want 530 and %q", err, text)
	}
}
