package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
)

func TestClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := httptest.NewServer(f)
	defer s.Close()
	c := management.Client{URL: s.URL + "/", User: "guest", Password: "guest"}
	do := func(q management.Request) string {
		t.Helper()
		body, err := c.Do(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(body))
	}
	do(management.Request{Method: http.MethodPut, Path: management.Path("queues", "/", "a/b c?d"), Body: []byte(`{"durable":true}`)})
	if got, want := do(management.Request{Method: http.MethodGet, Path: management.Path("queues", "/"),
		Query: url.Values{"columns": {"name,durable"}}}), `[{"durable":true,"name":"a/b c?d"}]`; got != want {
		t.Errorf("queues are %s, want %s", got, want)
	}
	closed := f.connect("guest", "/").NotifyClose(make(chan *amqp.Error, 1))
	do(management.Request{Method: http.MethodDelete, Path: management.Path("connections", "username", "guest"), Reason: "because"})
	wantClosed(t, closed, "because")

	_, err := c.Do(t.Context(), management.Request{Method: http.MethodDelete, Path: management.Path("queues", "nope", "q")})
	var refused *management.Refusal
	if !errors.As(err, &refused) || refused.Code != 404 || refused.Stable != "not_found" || refused.Reason != "vhost_not_found" {
		t.Errorf("Do = %#v, want the refusal 404", err)
	}
	c.Password = "wrong"
	if _, err = c.Do(t.Context(), management.Request{Method: http.MethodGet, Path: "whoami"}); !errors.As(err, &refused) || refused.Code != 401 {
		t.Errorf("Do with a wrong password = %v, want the refusal 401", err)
	}
	s.Close()
	if _, err = c.Do(t.Context(), management.Request{Method: http.MethodGet, Path: "whoami"}); err == nil || errors.As(err, new(*management.Refusal)) {
		t.Errorf("Do without a server = %v, want an error", err)
	}
}
