package store

// table maps seq to entry: open addressing with linear probing, entries inline.
// It is cut into shards so that growing never copies more than a small part at
// once (a 10M-entry table would stand still for a quarter of a second).
type table struct {
	shards [tableShards]shard
	count  int
}

const tableShards = 256

type shard struct {
	slots []entry // a power of two, or nil
	used  int
}

func (t *table) shard(seq uint64) *shard { return &t.shards[seq%tableShards] }

// home is where seq belongs. Sequence numbers are dense; the multiplication
// spreads them so that old survivors do not form runs with new arrivals.
func (s *shard) home(seq uint64) int {
	h := (seq / tableShards) * 0x9E3779B97F4A7C15
	return int(h>>32) & (len(s.slots) - 1)
}

// get returns the entry, valid until the next put or remove, or nil.
func (t *table) get(seq uint64) *entry {
	s := t.shard(seq)
	if s.used == 0 || seq == 0 {
		return nil
	}
	mask := len(s.slots) - 1
	for i := s.home(seq); ; i = (i + 1) & mask {
		switch s.slots[i].seq {
		case seq:
			return &s.slots[i]
		case 0:
			return nil
		}
	}
}

// put adds an entry; its seq must not be there.
func (t *table) put(e entry) {
	s := t.shard(e.seq)
	if (s.used+1)*4 > len(s.slots)*3 {
		s.resize(max(8, len(s.slots)*2))
	}
	s.place(e)
	s.used++
	t.count++
}

func (s *shard) place(e entry) {
	mask := len(s.slots) - 1
	i := s.home(e.seq)
	for s.slots[i].seq != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = e
}

func (s *shard) resize(n int) {
	old := s.slots
	s.slots = make([]entry, n)
	for i := range old {
		if old[i].seq != 0 {
			s.place(old[i])
		}
	}
}

// remove takes an entry out, closing the gap so that no tombstones build up.
func (t *table) remove(seq uint64) {
	e := t.get(seq)
	if e == nil {
		return
	}
	s := t.shard(seq)
	mask := len(s.slots) - 1
	i := s.home(seq)
	for s.slots[i].seq != seq {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if s.slots[j].seq == 0 {
			break
		}
		// Move j into the gap at i unless its home lies cyclically in (i, j].
		if h := s.home(s.slots[j].seq); (j-h)&mask >= (j-i)&mask {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = entry{}
	s.used--
	t.count--
	if len(s.slots) > 64 && s.used*8 < len(s.slots) {
		s.resize(len(s.slots) / 4)
	}
}

// each calls f for every entry; f may change it but not the table.
func (t *table) each(f func(*entry)) {
	for i := range t.shards {
		s := &t.shards[i]
		for j := range s.slots {
			if s.slots[j].seq != 0 {
				f(&s.slots[j])
			}
		}
	}
}
