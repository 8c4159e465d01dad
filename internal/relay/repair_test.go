//go:build relay

package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestHalfDeleted: what somebody deletes of a running relay's is there again, and what cannot be is told.
func TestHalfDeleted(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Management: true}, func(t *testing.T, b *testbroker.Broker) {
		a := newAdministrator(t, b)
		r, _ := startRelayWith(t, Config{URLs: []string{b.URL()}, Management: a.URL})
		c := newClient(t, b.URL())
		for _, name := range []string{topology.Intake, topology.Rescue, topology.Parked, slot{0, time.Now().Unix() + 1}.queue()} {
			if _, err := c.ch.QueueDelete(name, false, false, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.ch.ExchangeDelete(topology.Rescue, false, false); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "exchange x is bound to the intake again", func() bool {
			_, err := a.Do(t.Context(), management.Request{Method: http.MethodGet, Path: "queues/" + management.Path("/", topology.Intake)})
			if err != nil {
				return false
			}
			body, err := a.Do(t.Context(), management.Request{Method: http.MethodGet,
				Path: "bindings/" + management.Path("/", "e", "x", "q", topology.Intake)})
			return err == nil && strings.Contains(string(body), "any-with-x")
		})
		published := time.Now()
		c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": 1500}})
		c.get("q")
		if took := time.Since(published); took < 1500*time.Millisecond {
			t.Errorf("it came after %v, want after its delay", took)
		}
		if err := c.ch.ExchangeDelete("x.duepost", false, false); err != nil {
			t.Fatal(err)
		}
		r.await(t, func(alarm string) bool { return strings.Contains(alarm, `"x.duepost" is gone with its bindings`) })
		c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": 100}})
		if reason, _ := c.get(topology.Parked).Headers[headerReason].(string); !strings.Contains(reason, "x.duepost") {
			t.Errorf("parked because %q, want the exchange named", reason)
		}
		if err := topology.DeclareExchange(c.conn, topology.Exchange{Name: "x", Type: "direct", Durable: true}); err != nil {
			t.Fatal(err)
		}
		r.await(t, func(alarm string) bool { return alarm == "" })
	})
}

// TestRefusedAtTheStart: what needs somebody's hand ends the relay, and the error says what it is.
func TestRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		c := connect(t, b.URL())
		for _, args := range [][]string{{"add_user", "r", "r"}, {"set_permissions", "r", "^$", ".*", ".*"}, {"add_vhost", "closed"}} {
			if _, err := b.Control(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.ch.ExchangeDeclare(topology.Rescue, "fanout", true, false, false, false,
			amqp.Table{"alternate-exchange": fmt.Sprint("duepost.version.", topology.Version+1)}); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ url, want string }{
			{b.URL(), "relays of another version work here"},
			{"amqp://r:r@" + b.AMQPAddr + "/", "'duepost.rescue' in vhost '/' refused for user 'r'"},
			{"amqp://r:wrong@" + b.AMQPAddr + "/", "username or password not allowed"},
			{"amqp://r:r@" + b.AMQPAddr + "/closed", "access to vhost 'closed' refused for user 'r'"},
			{"amqp://guest:guest@" + b.AMQPAddr + "/nowhere", "vhost nowhere not found"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), patience/2)
			err := New(Config{URLs: []string{tc.url}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}).Run(ctx)
			cancel()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.url, err, tc.want)
			}
		}
	})
}
