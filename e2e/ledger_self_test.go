package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestLedger shows that the ledger notices each broken promise.
func TestLedger(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-time.Minute)
	cases := []struct {
		name  string
		story func(l *ledger)
		fault string
	}{
		{"kept", func(l *ledger) {
			l.deliver("a", time.Now())
			l.ack("a", time.Now())
			l.crash(time.Now(), time.Now())
			l.deliver("a", time.Now()) // the ack was too young to count on
		}, ""},
		{"early", func(l *ledger) { l.deliver("a", begin.Add(-time.Millisecond)) }, "before it was due"},
		{"unknown", func(l *ledger) { l.deliver("b", time.Now()) }, "never published"},
		{"twice", func(l *ledger) { l.deliver("a", time.Now()); l.deliver("a", time.Now()) }, "came twice"},
		{"cancelled", func(l *ledger) { l.cancel("a"); l.deliver("a", time.Now()) }, "was cancelled and came"},
		{"back from the dead", func(l *ledger) {
			l.ack("a", time.Now())
			l.crash(time.Now().Add(ackMargin), time.Now().Add(ackMargin))
			l.deliver("a", time.Now())
		}, "acknowledged before a crash"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			l.publish("a", begin)
			l.confirm("a")
			c.story(l)
			got := strings.Join(l.verdict(), "\n")
			if (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) {
				t.Errorf("faults %q, want %q", got, c.fault)
			}
		})
	}
}

// TestLedgerMisses shows that a confirmed message that never comes is missed,
// also when its ack was written to a broker that was gone.
func TestLedgerMisses(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.publish("a", time.Now())
	l.ack("a", time.Now())
	l.confirm("a")
	if err := l.awaitAll(time.Second); err != nil {
		t.Errorf("an acknowledged message is missed: %v", err)
	}
	l.crash(time.Now().Add(-time.Second), time.Now().Add(-time.Second))
	if err := l.awaitAll(time.Millisecond); err == nil {
		t.Error("a message acknowledged after the crash is not missed")
	}
}
