package store

import (
	"fmt"
	"maps"
	"slices"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
)

// step does one random operation. It returns false when the power is gone.
func (r *rig) step() bool {
	switch r.rnd.IntN(19) {
	case 0, 1, 2:
		return r.stepAppend()
	case 3, 4:
		return r.stepDelayed()
	case 5, 6:
		return r.stepSettle()
	case 7:
		r.pop()
		return true
	case 8, 9:
		r.pop()
		return r.stepRelease()
	case 10:
		return r.stepCancel()
	case 11:
		return r.stepBatch()
	case 12:
		return r.stepDefine()
	case 13:
		return r.stepFind()
	case 14:
		return r.stepReplace()
	case 15:
		return r.stepList()
	case 16:
		return r.stepCount()
	case 17:
		return r.stepForward()
	default:
		return r.stepWait()
	}
}

func (r *rig) stepAppend() bool {
	if len(r.queues) == 0 {
		r.queues = append(r.queues, r.nextQ)
		r.nextQ++
	}
	m, ts := r.message(), r.place()
	ref, lsn, err := r.s.Append(m, ts, len(ts))
	if err == nil {
		r.pushed(ts, ref, string(m.Body))
	}
	return r.ok(lsn, err)
}

func (r *rig) exchange() uint32 {
	if len(r.exs) == 0 || r.rnd.IntN(50) == 0 {
		r.exs = append(r.exs, r.nextEx)
		r.nextEx++
	}
	return r.exs[r.rnd.IntN(len(r.exs))]
}

func (r *rig) stepDelayed() bool {
	m := r.delayed()
	k, lsn, err := r.s.AppendDelayed(m, r.rnd.Int64N(1000))
	if err == nil {
		r.add(k, m)
	}
	return r.ok(lsn, err)
}

func (r *rig) stepSettle() bool {
	q, pos, refs := r.taken(1 + r.rnd.IntN(6))
	if len(pos) > 0 {
		r.s.Settle(q, pos, refs)
		r.ended(q, pos)
		r.note(0)
	}
	return true
}

func (r *rig) pop() {
	r.flying = r.s.PopDue(r.rnd.Int64N(1000), r.rnd.IntN(5), r.flying)
}

// stepRelease ends some of what is in flight.
func (r *rig) stepRelease() bool {
	b := &Batch{}
	var after []func()
	n := r.rnd.IntN(len(r.flying) + 1)
	for _, d := range r.flying[:n] {
		e, known := r.model.pending[d.Key.Seq]
		if !known {
			r.t.Fatalf("popped %v, which is not pending", d.Key)
		}
		switch r.rnd.IntN(5) {
		case 0:
			due := d.Key.Due + r.rnd.Int64N(300)
			b.Retry(d.Key, d.Ref, due)
			after = append(after, func() { e.due = due; r.model.pending[d.Key.Seq] = e })
		case 1:
			b.Discard(d.Key, d.Ref)
			after = append(after, func() { delete(r.model.pending, d.Key.Seq) })
		default:
			ts, at := r.place(), len(b.Refs)
			b.Move(&Move{Key: d.Key, Ref: d.Ref, Arrived: 7, TTL: -1, Persistent: true, Targets: ts, Holds: len(ts)})
			after = append(after, func() {
				delete(r.model.pending, d.Key.Seq)
				r.pushed(ts, b.Refs[at], e.body)
			})
		}
	}
	r.flying = r.flying[n:]
	lsn, err := r.s.Commit(b)
	if err == nil {
		for _, f := range after {
			f()
		}
	}
	if n == 0 {
		return true
	}
	return r.ok(lsn, err)
}

func (r *rig) stepCancel() bool {
	for seq, e := range r.model.pending {
		inFlight := slices.ContainsFunc(r.flying, func(d Due) bool { return d.Key.Seq == seq })
		out, lsn, err := r.s.Cancel(Key{e.due, seq})
		if err != nil {
			return r.ok(lsn, err)
		}
		if inFlight != (out == AlreadyDue) || inFlight == (out == Cancelled) {
			r.t.Fatalf("cancel %d: %v, in flight: %v", seq, out, inFlight)
		}
		if out == Cancelled {
			delete(r.model.pending, seq)
			return r.ok(lsn, nil)
		}
		return true
	}
	out, _, err := r.s.Cancel(Key{5, 1 << 40})
	if err != nil {
		return r.ok(0, err)
	}
	if out != NotFound {
		r.t.Fatalf("cancel of nothing: %v", out)
	}
	return true
}

// stepBatch does several things as one.
func (r *rig) stepBatch() bool {
	b := &Batch{}
	var after []func()
	for range 1 + r.rnd.IntN(3) {
		m, ts, at := r.message(), r.place(), len(b.Refs)
		b.Append(m, ts, len(ts))
		after = append(after, func() { r.pushed(ts, b.Refs[at], string(m.Body)) })
	}
	m, ak := r.delayed(), len(b.Keys)
	b.AppendDelayed(m, r.rnd.Int64N(1000))
	after = append(after, func() { r.add(b.Keys[ak], m) })
	q, pos, refs := r.taken(2)
	for i := range pos {
		b.Settle(q, pos[i], refs[i])
	}
	lsn, err := r.s.Commit(b)
	r.ended(q, pos)
	if err == nil {
		for _, f := range after {
			f()
		}
	}
	return r.ok(lsn, err)
}

// stepForward makes a copy of a message that shares its body, in the group in which
// the message ends, as a dead letter does.
func (r *rig) stepForward() bool {
	q, pos, refs := r.taken(1)
	if len(pos) == 0 {
		return true
	}
	rec, err := r.s.Read(refs[0], nil)
	for err == ErrMoved {
		r.mu.Lock()
		refs[0] = r.refs[Target{q, pos[0]}]
		r.mu.Unlock()
		rec, err = r.s.Read(refs[0], nil)
	}
	if err != nil {
		if r.dead(err) {
			return false
		}
		r.t.Fatalf("read %v: %v", refs[0], err)
	}
	body := string(rec.Body)
	m := rec.Message
	if m.Large.isSet() {
		m.Body = nil
	}
	b := &Batch{}
	ts := r.place()
	b.Append(&m, ts, len(ts))
	delayed := r.rnd.IntN(2) == 0
	if delayed {
		m.ExchangeID = r.exchange()
		b.AppendDelayed(&m, r.rnd.Int64N(1000))
	}
	b.Settle(q, pos[0], refs[0])
	lsn, err := r.s.Commit(b)
	r.ended(q, pos)
	if err == nil {
		r.pushed(ts, b.Refs[0], body)
		if delayed {
			m.Body = []byte(body)
			r.add(b.Keys[0], &m)
		}
	}
	return r.ok(lsn, err)
}

func (r *rig) stepDefine() bool {
	b := &Batch{}
	var dropped []uint32
	k := fmt.Sprint("key", r.rnd.IntN(5))
	switch r.rnd.IntN(5) {
	case 0:
		b.Delete(k)
		delete(r.model.defs, k)
	case 1:
		if len(r.queues) > 2 {
			q := r.queues[0]
			r.queues = r.queues[1:]
			b.DropQueue(q)
			dropped = append(dropped, q)
			for t := range r.model.queues {
				if t.Queue == q {
					delete(r.model.queues, t)
				}
			}
		}
	case 2:
		if len(r.exs) > 1 && len(r.flying) == 0 {
			x := r.exs[0]
			r.exs = r.exs[1:]
			b.DropExchange(x)
			for seq, e := range r.model.pending {
				if e.ex == x {
					delete(r.model.pending, seq)
				}
			}
		}
	case 3:
		r.queues = append(r.queues, r.nextQ)
		r.nextQ++
		fallthrough
	default:
		v := fmt.Sprint("value", r.rnd.Int())
		b.Put(k, []byte(v))
		r.model.defs[k] = v
	}
	if b.Len() == 0 {
		return true
	}
	lsn, err := r.s.Commit(b)
	for _, q := range dropped {
		r.forget(q)
	}
	return r.ok(lsn, err)
}

// forget lets go of all positions of a queue.
func (r *rig) forget(q uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, ref := range r.refs {
		if t.Queue == q {
			r.s.Drop(ref)
			delete(r.refs, t)
		}
	}
}

func (r *rig) stepWait() bool {
	for i := len(r.history) - 1; i >= 0; i-- {
		if lsn := r.history[i].lsn; lsn != 0 {
			return r.wait(lsn)
		}
	}
	return true
}

// check compares what is cheap to compare while the store is running.
func (r *rig) check() {
	x := r.s.index
	x.mu.Lock()
	var sum Pending
	for _, p := range x.pending {
		sum.Count += p.Count
		sum.Bytes += p.Bytes
	}
	total := x.total
	x.mu.Unlock()
	if total != sum || total.Count != uint64(len(r.model.pending)) {
		r.t.Fatalf("pending %+v, by exchange %+v, want %d", total, sum, len(r.model.pending))
	}
	r.checkRuns()
	r.checkBodies()
	r.mu.Lock()
	refs := maps.Clone(r.refs)
	r.mu.Unlock()
	for t, ref := range refs {
		rec, err := r.s.Read(ref, nil)
		for err == ErrMoved && ref != (Ref{}) {
			r.mu.Lock()
			ref = r.refs[t]
			r.mu.Unlock()
			rec, err = r.s.Read(ref, nil)
		}
		if err != nil {
			if r.dead(err) {
				return
			}
			r.t.Fatalf("read %v at %v: %v", t, ref, err)
		}
		if string(rec.Body) != r.model.queues[t] {
			r.t.Fatalf("read %v: %.40q, want %.40q", t, rec.Body, r.model.queues[t])
		}
	}
}

// checkBodies compares who claims large bodies with who should.
func (r *rig) checkBodies() {
	synctest.Wait() // the owner is asked for what recovery found
	queued, waiting := int64(0), int64(0)
	for _, b := range r.model.queues {
		if len(b) >= r.s.log.o.LargeBytes {
			queued++
		}
	}
	for _, e := range r.model.pending {
		if len(e.body) >= r.s.log.o.LargeBytes {
			waiting++
		}
	}
	b := r.s.bodies
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := b.inQueues.Load(); got != queued {
		r.t.Fatalf("%d positions claim large bodies, want %d", got, queued)
	}
	if got := b.waiting.Load(); got != waiting || len(b.waits) != int(waiting) {
		r.t.Fatalf("%d entries claim large bodies, want %d", got, waiting)
	}
	if queued+waiting == 0 {
		for _, f := range b.files {
			for _, y := range f.bodies {
				if y.claims > 0 {
					r.t.Fatalf("%s: a body is left with %d claims", f.name, y.claims)
				}
			}
		}
	}
}

// checkRuns compares what the runs say of themselves with what is in them.
func (r *rig) checkRuns() {
	x, l := r.s.index, r.s.log
	x.popping.Lock()
	defer x.popping.Unlock()
	x.ending.Lock()
	defer x.ending.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		left := map[uint32]Pending{}
		for i := range f.blocks {
			m := &image{}
			if err := f.read(m, i, l, func(int64, int64) {}); err != nil {
				if r.disk.cut || r.faulty {
					return
				}
				r.t.Fatal(err)
			}
			for _, e := range m.records {
				flies := slices.ContainsFunc(x.inFlight(), func(fl flight) bool { return fl.from.run == f && fl.ref.Off == e.off })
				if (e.off >= f.next && e.off < f.state.stop && !f.isSkipped(&e)) || flies {
					p := left[e.exchange]
					left[e.exchange] = Pending{p.Count + 1, p.Bytes + uint64(e.length)}
				}
			}
		}
		if d := gocmp.Diff(left, f.state.left); d != "" {
			r.t.Fatalf("%s (%d of %d, stop %d): - is left, + counted as left:\n%s", f.name, f.next, f.end, f.state.stop, d)
		}
	}
}
