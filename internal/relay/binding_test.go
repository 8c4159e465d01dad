//go:build relay

package relay

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestBindingPastTheDelay: what somebody has bound to the exchange that publishers see is found, told, and
// can be moved, and then it is delayed.
func TestBindingPastTheDelay(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Management: true}, func(t *testing.T, b *testbroker.Broker) {
		a := newAdministrator(t, b)
		r, _ := startRelayWith(t, Config{URLs: []string{b.URL()}, Management: a.URL})
		c := newClient(t, b.URL())
		for _, name := range []string{"past", "fan"} {
			if _, err := c.ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.ch.QueueBind("past", "k", "x", false, amqp.Table{"x-match": "all", "n": int32(7)}); err != nil {
			t.Fatal(err)
		}
		if err := c.ch.ExchangeBind("amq.fanout", "k", "x", false, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.ch.QueueBind("fan", "", "amq.fanout", false, nil); err != nil {
			t.Fatal(err)
		}
		r.await(t, func(alarm string) bool {
			return strings.Contains(alarm, `queue "past" to exchange "x"`) && strings.Contains(alarm, `exchange "amq.fanout" to exchange "x"`)
		})
		found, err := topology.ForeignBindings(t.Context(), &a.Client, "/")
		if err != nil || len(found) != 2 {
			t.Fatalf("found %v, %v, want two", found, err)
		}
		for _, one := range found {
			if err := topology.MoveBinding(t.Context(), &a.Client, "/", one); err != nil {
				t.Fatal(err)
			}
		}
		r.await(t, func(alarm string) bool { return alarm == "" })
		published := time.Now()
		c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": 1500, "n": int32(7)}})
		for _, queue := range []string{"past", "fan", "q"} {
			c.get(queue)
			if took := time.Since(published); took < 1500*time.Millisecond {
				t.Errorf("in queue %q it is after %v, want after its delay", queue, took)
			}
		}
	})
}

// await waits until the alarm is as wanted.
func (r *Relay) await(t *testing.T, so func(alarm string) bool) {
	t.Helper()
	for until := time.Now().Add(patience); !so(r.Alarm()); <-time.After(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the alarm is %q", r.Alarm())
		}
	}
}
