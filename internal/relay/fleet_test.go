//go:build relay

package relay

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestEveryVHost: a fleet for all virtual hosts works in each that the user may use, also in one made
// later, though one refuses it; and it takes the next node where one does not answer.
func TestEveryVHost(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Management: true}, func(t *testing.T, b *testbroker.Broker) {
		a := newAdministrator(t, b)
		for _, vhost := range []string{"one", "refused"} {
			a.ask(http.MethodPut, "vhosts/"+vhost, map[string]any{})
		}
		a.ask(http.MethodPut, "operator-policies/"+management.Path("refused", "culprit"), map[string]any{
			"pattern": ".*", "apply-to": "queues", "definition": map[string]any{"message-ttl": 1}})
		fleet, err := NewFleet(Config{
			URLs: []string{"amqp://guest:guest@127.0.0.1:1/", b.URL()}, Management: a.URL,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		}, []string{AllVHosts})
		if err != nil {
			t.Fatal(err)
		}
		fleet.lookEvery = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- fleet.Run(ctx) }()

		c := newClient(t, b.URL()+"one")
		c.burst(0, 20, 100*time.Millisecond, 2*time.Second)
		if sum := collect(t, b.URL()+"one", 0, 20, patience); sum.missing > 0 || sum.early > 0 {
			t.Errorf("in one: %+v, want none missing", sum)
		}
		a.ask(http.MethodPut, "vhosts/later", map[string]any{})
		c = newClient(t, b.URL()+"later")
		c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": 100}, Body: []byte("here")})
		if got := string(c.get("q").Body); got != "here" {
			t.Errorf("in a virtual host made later came %q", got)
		}
		a.ask(http.MethodDelete, "vhosts/later", nil)
		for until := time.Now().Add(patience); fleet.Relays()["later"] != nil; <-time.After(20 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("the relay of a virtual host that is gone stays")
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the fleet ended with: %v", err)
		}
	})
}

// TestFleetNeedsSomewhereToGo is what cannot be right.
func TestFleetNeedsSomewhereToGo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cfg    Config
		vhosts []string
		want   string
	}{
		{Config{}, nil, "no URL"},
		{Config{URLs: []string{"http://here"}}, nil, "read URL"},
		{Config{URLs: []string{"amqp://here"}}, []string{AllVHosts}, "management API"},
	} {
		if _, err := NewFleet(tc.cfg, tc.vhosts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v %v: %v, want an error with %q", tc.cfg, tc.vhosts, err, tc.want)
		}
	}
}
