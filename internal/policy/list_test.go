package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listOf adds policies in the order given.
func listOf(t *testing.T, all ...Policy) (l List) {
	t.Helper()
	for _, p := range all {
		if p.Definition == nil {
			p.Definition = Definition{"max-length": int64(1)}
		}
		var err error
		if l, err = l.With(&p); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func nameOf(p *Policy) string {
	if p == nil {
		return ""
	}
	return p.Name
}

func wantMatch(t *testing.T, l List, name string, k Kind, want string) {
	t.Helper()
	if got := nameOf(l.Match(name, k)); got != want {
		t.Errorf("%s of kind %d: got policy %q, want %q", name, k, got, want)
	}
}

func TestHighestPriorityWins(t *testing.T) {
	t.Parallel()
	l := listOf(t,
		Policy{Name: "low", Pattern: ".*", Priority: -1},
		Policy{Name: "high", Pattern: "^a", Priority: 1.5},
		Policy{Name: "middle", Pattern: "^a", Priority: 1},
	)
	wantMatch(t, l, "ab", ClassicQueue, "high")
	wantMatch(t, l, "b", ClassicQueue, "low")
	wantMatch(t, l.Without("high"), "ab", ClassicQueue, "middle")
	wantMatch(t, l, "ab", ClassicQueue, "high") // Without left the list as it was
	wantMatch(t, List{}, "ab", ClassicQueue, "")
}

func TestOfEqualPriorityTheFirstByNameWins(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "a", "b"}, {"b", "c", "a"}} {
		var all []Policy
		for _, name := range order {
			all = append(all, Policy{Name: name, Pattern: "q", Priority: 5})
		}
		wantMatch(t, listOf(t, all...), "q", ClassicQueue, "a")
	}
}

func TestPolicyIsReplacedByName(t *testing.T) {
	t.Parallel()
	l := listOf(t, Policy{Name: "p", Pattern: "a"}, Policy{Name: "p", Pattern: "b"})
	wantMatch(t, l, "a", ClassicQueue, "")
	wantMatch(t, l, "b", ClassicQueue, "p")
	if l.Len() != 1 || l.Named("p").Pattern != "b" || l.Named("q") != nil {
		t.Errorf("got %v", l.All())
	}
}

func TestAllIsInOrderOfRank(t *testing.T) {
	t.Parallel()
	l := listOf(t, Policy{Name: "b"}, Policy{Name: "a"}, Policy{Name: "c", Priority: 1})
	var got []string
	for _, p := range l.All() {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApplyToSaysWhichKinds(t *testing.T) {
	t.Parallel()
	for applyTo, kinds := range map[string]Kind{
		"": ClassicQueue | QuorumQueue | Exchange, All: ClassicQueue | QuorumQueue | Exchange,
		Queues: ClassicQueue | QuorumQueue, Exchanges: Exchange,
		ClassicQueues: ClassicQueue, QuorumQueues: QuorumQueue, Streams: 0,
	} {
		l := listOf(t, Policy{Name: "p", Pattern: ".*", ApplyTo: applyTo})
		for _, k := range []Kind{ClassicQueue, QuorumQueue, Exchange} {
			want := ""
			if kinds&k != 0 {
				want = "p"
			}
			wantMatch(t, l, applyTo, k, want)
		}
	}
}

// TestPolicyWithSettingThatAQueueLacksIsPassedOver: RabbitMQ takes the next that matches, and does
// not apply the rest of the settings.
func TestPolicyWithSettingThatAQueueLacksIsPassedOver(t *testing.T) {
	t.Parallel()
	all := ClassicQueue | QuorumQueue | Exchange
	for _, tt := range []struct {
		d    Definition
		want Kind
	}{
		{Definition{"max-length": int64(1)}, all},
		{Definition{"alternate-exchange": "x"}, all},
		{Definition{"queue-version": int64(1)}, all},
		{Definition{"overflow": "reject-publish-dlx"}, all},
		{Definition{"delivery-limit": int64(4), "max-length": int64(1)}, all &^ ClassicQueue},
		{Definition{"dead-letter-strategy": "at-least-once"}, all &^ ClassicQueue},
		{Definition{"queue-mode": "lazy"}, all &^ QuorumQueue},
		{Definition{"queue-master-locator": "random"}, all &^ QuorumQueue},
		{Definition{"ha-mode": "all", "ha-sync-mode": "automatic"}, all &^ QuorumQueue},
		{Definition{"max-age": "1D"}, Exchange},
		{Definition{"initial-cluster-size": int64(3)}, Exchange},
	} {
		l := listOf(t,
			Policy{Name: "p", Pattern: ".*", Priority: 1, Definition: tt.d},
			Policy{Name: "next", Pattern: ".*"},
		)
		for _, k := range []Kind{ClassicQueue, QuorumQueue, Exchange} {
			want := "next"
			if tt.want&k != 0 {
				want = "p"
			}
			if got := nameOf(l.Match("x", k)); got != want {
				t.Errorf("%v, kind %d: got %q, want %q", tt.d, k, got, want)
			}
		}
	}
}

func TestPatternMayLookAhead(t *testing.T) {
	t.Parallel()
	l := listOf(t, Policy{Name: "p", Pattern: `^(?!amq\.)`})
	wantMatch(t, l, "orders", Exchange, "p")
	wantMatch(t, l, "amq.topic", Exchange, "")
	if _, err := l.With(&Policy{Name: "bad", Pattern: "("}); err == nil {
		t.Error("a pattern that is none was accepted")
	}
}
