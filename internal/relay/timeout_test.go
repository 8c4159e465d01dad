//go:build relay

package relay

import (
	"testing"
	"time"

	"github.com/duepost/duepost/internal/testbroker"
)

// TestConsumerTimeout: where the server lets consumers hold a message for seconds only, nothing is lost that
// is held for longer, and RabbitMQ 4.3 takes nothing away.
func TestConsumerTimeout(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Config: "consumer_timeout = 5000\n"}, func(t *testing.T, b *testbroker.Broker) {
		r, _ := startRelay(t, b.URL())
		c := newClient(t, b.URL())
		c.burst(0, 100, 20*time.Second, 25*time.Second)
		sum := collect(t, b.URL(), 0, 100, patience)
		t.Logf("%+v", sum)
		if sum.missing > 0 || sum.early > 0 {
			t.Errorf("%+v, want none missing and none early", sum)
		}
		if n := r.Stats().Sessions.Load(); b.Name == "RabbitMQ 4.3" && n != 1 {
			t.Errorf("%d sessions, want one: RabbitMQ has taken messages away", n)
		}
	})
}
