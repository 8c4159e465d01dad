package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/duepost/duepost/internal/relay/topology"
)

// Bin is how many messages wait that are due in a piece of time.
type Bin struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Messages int       `json:"messages"`
}

// Timeline says when what is on the wheel is due, in the order of time. Queues are used round and
// round: it is the slot that a queue has now, so what a relay has left behind in a slot that passed
// is told as due then.
func Timeline(p *topology.Pending, now time.Time) []Bin {
	bins := []Bin{}
	for level, width := range widths() {
		reach := int64(farthest)
		if level == 0 {
			reach = nearest
		}
		// The ring holds the slots from oldest on.
		oldest := now.UnixMilli()/width + reach - ring + 1
		for index, n := range p.Wheel[level] {
			if n == 0 {
				continue
			}
			number := oldest + ((int64(index)-oldest)%ring+ring)%ring
			from := time.UnixMilli(number * width).UTC()
			bins = append(bins, Bin{from, from.Add(time.Duration(width) * time.Millisecond), n})
		}
	}
	cut := 0
	for _, n := range p.Wheel[fine] {
		cut += n
	}
	if cut > 0 { // of which second the ring of the fine slots does not tell
		bins = append(bins, Bin{now.UTC(), now.Add(nearest * time.Second).UTC(), cut})
	}
	slices.SortFunc(bins, func(a, b Bin) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	return bins
}
