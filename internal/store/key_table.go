package store

// keyTable finds the sequence numbers of what was appended with a key by the
// key's hash. It is a hash table without pointers, linearly probed.
//
// Nothing is taken out of it: who looks something up finds out whether that is
// still there. It lives as long as the fresh entries of one segment, so there is
// no more in it than fits into one.
type keyTable struct {
	slots []keySlot // a power of two; seq 0 = empty
	count int
}

type keySlot struct{ hash, seq uint64 }

func (t *keyTable) add(hash, seq uint64) {
	if 4*(t.count+1) > 3*len(t.slots) {
		t.grow()
	}
	for i := t.first(hash); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.seq == 0 || *s == (keySlot{hash, seq}) {
			if s.seq == 0 {
				t.count++
			}
			*s = keySlot{hash, seq}
			return
		}
	}
}

func (t *keyTable) grow() {
	old := t.slots
	t.slots, t.count = make([]keySlot, max(16, 2*len(old))), 0
	for _, s := range old {
		if s.seq != 0 {
			t.add(s.hash, s.seq)
		}
	}
}

// first is where the search for a hash begins. The caller's hash is spread, so
// that a poor one costs little.
func (t *keyTable) first(hash uint64) int {
	return int(spread(hash) >> 32 & uint64(len(t.slots)-1))
}

// spread makes each bit of the result depend on all of the hash.
func spread(hash uint64) uint64 {
	hash = (hash ^ hash>>32) * 0xBF58476D1CE4E5B9
	hash = (hash ^ hash>>29) * 0x94D049BB133111EB
	return hash ^ hash>>32
}

// each calls visit with every sequence number that was added with a hash.
func (t *keyTable) each(hash uint64, visit func(seq uint64)) {
	if len(t.slots) == 0 {
		return
	}
	for i := t.first(hash); t.slots[i].seq != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].hash == hash {
			visit(t.slots[i].seq)
		}
	}
}
