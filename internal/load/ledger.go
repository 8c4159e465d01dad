package load

import "math/bits"

// ledger notes which messages arrived: one bit for each number of each publisher. A consumer
// has one of its own; merge brings them together afterwards. Numbers start at 0 and are dense,
// so a million messages take 125 kB.
type ledger struct {
	seen       map[uint32][]uint64
	duplicates uint64
}

func newLedger() *ledger { return &ledger{seen: map[uint32][]uint64{}} }

// note marks one message; a second time it counts as a duplicate.
func (l *ledger) note(publisher uint32, seq uint64) {
	word, bit := int(seq/64), uint64(1)<<(seq%64)
	set := l.seen[publisher]
	if word >= len(set) {
		set = append(set, make([]uint64, word+1-len(set)+len(set)/2)...)
		l.seen[publisher] = set
	}
	if set[word]&bit != 0 {
		l.duplicates++
	}
	set[word] |= bit
}

// merge adds what o noted.
func (l *ledger) merge(o *ledger) {
	l.duplicates += o.duplicates
	for publisher, theirs := range o.seen {
		ours := l.seen[publisher]
		if len(ours) < len(theirs) {
			ours = append(ours, make([]uint64, len(theirs)-len(ours))...)
		}
		for i, w := range theirs {
			l.duplicates += uint64(bits.OnesCount64(ours[i] & w))
			ours[i] |= w
		}
		l.seen[publisher] = ours
	}
}

// distinct is how many different messages arrived.
func (l *ledger) distinct() uint64 {
	var n uint64
	for _, set := range l.seen {
		for _, w := range set {
			n += uint64(bits.OnesCount64(w))
		}
	}
	return n
}
