//go:build relay

package relay

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// clusterMessagesVariable is how many messages TestCluster sends: 10,000 of up to 20 s if it is not
// set, else as many of up to 120 s.
const clusterMessagesVariable = "DUEPOST_RELAY_CLUSTER"

// TestCluster: two relays on three nodes, of which one at a time is stopped, cut off from the
// others, frozen and killed, while messages come and go. What was confirmed comes, nothing early,
// and what comes twice says so.
func TestCluster(t *testing.T) {
	t.Parallel()
	n, longest := clusterLoad(t)
	c := startCluster(t)
	for first := 1; first <= 2; first++ {
		// The first, which has all slots, works on the node that is cut off, and cannot know.
		r, _ := startRelayWith(t, Config{URLs: slices.Concat(c.URLs()[first:], c.URLs()[:first])})
		defer func() { t.Logf("a relay had %d sessions", r.Stats().Sessions.Load()) }()
	}
	newClient(t, c.Nodes[0].URL())

	load := &clusterLoader{T: t, urls: c.URLs(), longest: longest}
	seen := newWitness()
	ctx, cancel := context.WithCancel(t.Context())
	consumed := make(chan struct{})
	go func() { defer close(consumed); seen.watch(ctx, t, c.URLs()) }()
	published := make(chan struct{})
	go func() { defer close(published); load.run(n) }()

	disturb(t, c, published)
	<-published
	select {
	case <-seen.complete(load.confirmed):
	case <-time.After(longest + 2*patience):
	}
	cancel()
	<-consumed
	seen.report(t, load)
}

// clusterLoad is how many messages are sent and how long they wait at most.
func clusterLoad(t *testing.T) (n int, longest time.Duration) {
	t.Helper()
	text := os.Getenv(clusterMessagesVariable)
	if text == "" {
		return 10_000, 20 * time.Second
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", clusterMessagesVariable, err)
	}
	return n, 120 * time.Second
}

// startCluster starts the newest RabbitMQ that is there on three nodes.
func startCluster(t *testing.T) *testbroker.Cluster {
	t.Helper()
	all, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 || all[len(all)-1].Version != "4.3" {
		requirement.Missing(t, "RabbitMQ 4.3", "tools/rabbitmq43.sh makes one")
	}
	c, err := all[len(all)-1].StartCluster(t.Context(), 3, testbroker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Kill(); err != nil {
			t.Error(err)
		}
		for i, b := range c.Nodes {
			if t.Failed() {
				t.Logf("what node %d printed last:\n%s", i, b.Output())
			}
		}
	})
	return c
}

// Times of disturb.
const (
	outage  = 8 * time.Second // how long a node is away at least
	between = 6 * time.Second // how long all nodes are there
)

// disturb takes one node after the other away and gives it back.
func disturb(t *testing.T, c *testbroker.Cluster, enough <-chan struct{}) {
	t.Helper()
	stop, cut, frozen, killed := c.Nodes[0], 1, c.Nodes[2], c.Nodes[0]
	for _, step := range []struct {
		name       string
		away, back func() error
	}{
		{"stop", stop.Stop, func() error { return stop.Start(t.Context()) }},
		{"cut off", func() error { return c.CutOff(t.Context(), cut) }, func() error { return c.Rejoin(t.Context(), cut) }},
		{"freeze", frozen.Freeze, frozen.Thaw},
		{"kill", killed.Kill, func() error { return killed.Start(t.Context()) }},
	} {
		<-time.After(between)
		select {
		case <-enough:
			t.Errorf("all was sent before the fault %q", step.name)
		default:
		}
		t.Logf("fault: %s", step.name)
		if err := step.away(); err != nil {
			t.Fatal(err)
		}
		<-time.After(outage)
		if err := step.back(); err != nil {
			t.Fatal(err)
		}
		t.Logf("over: %s", step.name)
	}
}
