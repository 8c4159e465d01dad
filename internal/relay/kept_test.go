//go:build relay

package relay

import (
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestKeptExchanges: what is to be kept is there when the relay works, a second time as well, and one of
// that name that is something else keeps the relay from starting.
func TestKeptExchanges(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		kept := []topology.Kept{
			{Exchange: topology.Exchange{Name: "here", Type: "topic", Durable: true}},
			{Exchange: topology.Exchange{Name: "also", Type: "fanout", Durable: true}, VHost: "/"},
			{Exchange: topology.Exchange{Name: "elsewhere", Type: "topic", Durable: true}, VHost: "other"},
		}
		for range 2 {
			_, stop := startRelayWith(t, Config{URLs: []string{b.URL()}, Exchanges: kept})
			c := connect(t, b.URL())
			for name, want := range map[string]bool{"here": true, "also": true, "elsewhere": false} {
				if found, err := topology.IsDelayed(c.conn, name); err != nil || found != want {
					t.Errorf("exchange %q is there: %v, %v, want %v", name, found, err, want)
				}
			}
			stop()
		}
		kept[0].Type = "direct"
		err := New(Config{URLs: []string{b.URL()}, Exchanges: kept}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "here.duepost") || !strings.Contains(err.Error(), "406") {
			t.Errorf("of another type: %v, want the refusal of RabbitMQ", err)
		}
	})
}
