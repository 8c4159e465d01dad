package load

import "testing"

func TestLedgerCountsDistinctAndDuplicates(t *testing.T) {
	t.Parallel()
	a, b := newLedger(), newLedger()
	for seq := range uint64(1000) {
		a.note(1, seq)
	}
	a.note(1, 999) // twice at one consumer
	a.note(2, 0)   // of another publisher: no duplicate
	for seq := uint64(990); seq < 1500; seq++ {
		b.note(1, seq) // 990 to 999 at both consumers
	}
	all := newLedger()
	all.merge(a)
	all.merge(b)
	if got, want := all.distinct(), uint64(1501); got != want {
		t.Errorf("distinct() = %d, want %d", got, want)
	}
	if got, want := all.duplicates, uint64(11); got != want {
		t.Errorf("duplicates = %d, want %d", got, want)
	}
}

func TestLedgerFromTheBack(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for seq := 5000; seq >= 0; seq-- {
		l.note(7, uint64(seq))
	}
	if got := l.distinct(); got != 5001 || l.duplicates != 0 {
		t.Errorf("distinct = %d, duplicates = %d, want 5001, 0", got, l.duplicates)
	}
}
