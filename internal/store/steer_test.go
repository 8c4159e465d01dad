package store

import (
	"errors"
	"maps"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
)

// keyHashes is how many hashes the model test uses.
const keyHashes = 7

// delayed is a message for an exchange, with or without a key.
func (r *rig) delayed() *Message {
	m := r.message()
	m.ExchangeID = r.exchange()
	m.KeyHash = r.hash()
	return m
}

// hash is 0 half of the time.
func (r *rig) hash() uint64 {
	if r.rnd.IntN(2) == 0 {
		return 0
	}
	return spread(1 + r.rnd.Uint64N(keyHashes))
}

func (r *rig) isFlying(seq uint64) bool {
	return slices.ContainsFunc(r.flying, func(d Due) bool { return d.Key.Seq == seq })
}

// waiting returns the keys in the model that wait and pass a filter, in order.
func (r *rig) waiting(filter func(k Key, e *waitingEntry) bool) []Key {
	keys := []Key{}
	for seq, e := range r.model.pending {
		if k := (Key{e.due, seq}); !r.isFlying(seq) && filter(k, &e) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, Key.compare)
	return keys
}

// stepFind looks for a key.
func (r *rig) stepFind() bool {
	ex, hash := r.exchange(), spread(1+r.rnd.Uint64N(keyHashes))
	odd := func(rec *Record) bool { return rec.Key.Seq%2 == 1 }
	got, err := r.s.FindKey(ex, hash, odd, []Key{})
	if err != nil {
		return r.ok(0, err)
	}
	slices.SortFunc(got, Key.compare)
	want := r.waiting(func(k Key, e *waitingEntry) bool { return e.ex == ex && e.hash == hash && k.Seq%2 == 1 })
	if d := gocmp.Diff(want, got); d != "" {
		r.t.Fatalf("find key %x in exchange %d (- want, + got):\n%s", hash, ex, d)
	}
	return r.stepGet()
}

func (r *rig) stepGet() bool {
	for seq, e := range r.model.pending {
		rec, err := r.s.Get(Key{e.due, seq})
		if err != nil {
			return r.ok(0, err)
		}
		if string(rec.Body) != e.body || rec.KeyHash != e.hash || rec.ExchangeID != e.ex {
			r.t.Fatalf("get %d: %.20q, key %x, exchange %d; want %.20q, %x, %d", seq,
				rec.Body, rec.KeyHash, rec.ExchangeID, e.body, e.hash, e.ex)
		}
		break
	}
	if _, err := r.s.Get(Key{5, 1 << 40}); !errors.Is(err, ErrNotPending) {
		return r.ok(0, err)
	}
	return true
}

// stepReplace puts a message into the place of one or two others.
func (r *rig) stepReplace() bool {
	seqs := slices.Sorted(maps.Keys(r.model.pending))
	if len(seqs) == 0 {
		return true
	}
	seq := seqs[r.rnd.IntN(len(seqs))]
	old, m := Key{r.model.pending[seq].due, seq}, r.delayed()
	due := r.rnd.Int64N(1000)
	if r.rnd.IntN(2) == 0 {
		return r.replaceLoosely(old, m, due)
	}
	out, k, lsn, err := r.s.Replace(old, m, due)
	if err != nil {
		return r.ok(lsn, err)
	}
	if flies := r.isFlying(seq); flies != (out == AlreadyDue) || flies == (out == Cancelled) {
		r.t.Fatalf("replace %d: %v, in flight: %v", seq, out, flies)
	}
	if out == Cancelled {
		delete(r.model.pending, seq)
		r.add(k, m)
	}
	return r.ok(lsn, nil)
}

// replaceLoosely appends in any case, and cancels twice.
func (r *rig) replaceLoosely(old Key, m *Message, due int64) bool {
	var b Batch
	b.Cancel(old)
	b.AppendDelayed(m, due)
	b.Cancel(old)
	b.Cancel(Key{due, 1 << 40})
	lsn, err := r.s.Commit(&b)
	if err != nil {
		return r.ok(lsn, err)
	}
	want := []Outcome{Cancelled, NotFound, NotFound}
	if r.isFlying(old.Seq) {
		want[0] = AlreadyDue
	} else {
		delete(r.model.pending, old.Seq)
	}
	if d := gocmp.Diff(want, b.Outcomes); d != "" {
		r.t.Fatalf("cancel %v in a batch (- want, + got):\n%s", old, d)
	}
	r.add(b.Keys[0], m)
	return r.ok(lsn, nil)
}

// stepList goes through all pages of a listing.
func (r *rig) stepList() bool {
	o := ListOptions{Limit: 1 + r.rnd.IntN(20), Exchanges: r.someExchanges()}
	if r.rnd.IntN(2) == 0 {
		o.From, o.To = r.span()
	}
	want := r.waiting(func(k Key, e *waitingEntry) bool {
		return k.Due >= o.From && (o.To == 0 || k.Due < o.To) && o.takesExchange(e.ex)
	})
	got := []Key{}
	for {
		page, err := r.s.List(o, nil)
		if err != nil {
			return r.ok(0, err)
		}
		for _, l := range page {
			if l.ExchangeID != r.model.pending[l.Key.Seq].ex || l.Bytes == 0 {
				r.t.Fatalf("listed %+v", l)
			}
			got = append(got, l.Key)
		}
		if len(page) < o.Limit {
			break
		}
		o.After = page[len(page)-1].Key
	}
	if d := gocmp.Diff(want, got); d != "" {
		r.t.Fatalf("list %+v (- want, + got):\n%s", o, d)
	}
	return true
}

// someExchanges returns none, one or two.
func (r *rig) someExchanges() (list []uint32) {
	for range r.rnd.IntN(3) {
		list = append(list, r.exchange())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (r *rig) span() (from, to int64) {
	from = r.rnd.Int64N(1000)
	return from, from + 1 + r.rnd.Int64N(500)
}

// stepCount counts in all, and by due.
func (r *rig) stepCount() bool {
	exchanges := r.someExchanges()
	from, to := r.span()
	step := 1 + r.rnd.Int64N(200)
	want := make([]uint64, (to-from-1)/step+1)
	var sum uint64
	filter := ListOptions{Exchanges: exchanges}
	for _, k := range r.waiting(func(k Key, e *waitingEntry) bool {
		return k.Due >= from && k.Due < to && filter.takesExchange(e.ex)
	}) {
		want[(k.Due-from)/step]++
		sum++
	}
	got, exact, err := r.s.Histogram(from, to, step, exchanges...)
	if err != nil {
		return r.ok(0, err)
	}
	if d := gocmp.Diff(want, got); d != "" || !exact {
		r.t.Fatalf("histogram from %d to %d by %d of %v, exact: %v (- want, + got):\n%s", from, to, step, exchanges, exact, d)
	}
	n, exact, err := r.s.Count(from, to, exchanges...)
	if err != nil {
		return r.ok(0, err)
	}
	if n != sum || !exact {
		r.t.Fatalf("count from %d to %d of %v: %d, exact: %v; want %d", from, to, exchanges, n, exact, sum)
	}
	return true
}
