package store

import "slices"

// install is step 3.
func (f *flush) install(r *run) error {
	x, l := f.c.s.index, f.c.log
	x.ending.Lock()
	defer x.ending.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		moved := f.state(r)
		rec := appendRecord(nil, kindFlush, 0, moved.append)
		if r.count > 0 {
			rec = appendRecord(rec, kindRun, 0, func(b []byte) []byte { return r.state.append(b, r.id) })
			linkGroup(rec)
		}
		err := f.c.s.placeLocked(rec, forCleaner, func(LSN) {
			l.active().idle++ // the first record; keepStateLocked counts the other
			if r.count > 0 {
				l.files = append(l.files, r)
				l.publishLocked()
				l.keepStateLocked(r)
			}
			l.stats.Flushed += uint64(r.count)
			l.stats.FlushedBytes += uint64(r.size)
		})
		if err == errAgain {
			continue
		}
		if err == nil {
			f.serveLocked(r)
		}
		return err
	}
}

// state finds out what of the run still waits or is in flight, and what stays in
// the log.
func (f *flush) state(r *run) (moved flushedSegments) {
	x := f.c.s.index
	r.state = runState{stop: r.end, left: map[uint32]Pending{}}
	for _, e := range r.exchanges {
		r.state.left[e.id] = Pending{Count: uint64(e.count), Bytes: e.bytes}
	}
	r.next = f.firstWaiting(r)
	r.state.done = r.next
	for i := range f.list {
		p := &f.list[i]
		if p.to >= r.next {
			break
		}
		if p.to != 0 {
			r.state.take(p.exchange, oneOf(p.length)) // popped, or cancelled before that
		}
	}
	for _, g := range f.segs {
		moved.segments = append(moved.segments, g.id)
		f.take(r, g.fresh)
	}
	for i := range x.inFlight() {
		fl := &x.flying[x.landed+i]
		if fl.from.fresh == nil || !fl.from.fresh.flushing {
			continue
		}
		if p := f.find(fl.key); p == nil {
			moved.flying = append(moved.flying, fl.key.Seq)
		} else {
			r.state.done = min(r.state.done, p.to)
			if !fl.dropped {
				r.state.put(p.exchange, p.length)
			}
		}
	}
	return moved
}

// take applies what was cancelled and dropped meanwhile.
func (f *flush) take(r *run, fr *fresh) {
	for _, k := range fr.cancelled {
		if p := f.find(k); p != nil {
			r.state.cancelled = r.state.cancelled.with(f.ordinal(r, p))
			if p.to >= r.next {
				r.state.take(p.exchange, oneOf(p.length))
			}
		}
	}
	for _, ex := range fr.dropped {
		r.drop(ex)
	}
}

// firstWaiting returns the offset of the first record of the run that was not
// popped. Cancelled ones do not count.
func (f *flush) firstWaiting(r *run) uint32 {
	first, none := Key{}, true
	for _, g := range f.segs {
		if fr := g.fresh; fr.waiting > 0 && (none || fr.head.key().Less(first)) {
			first, none = fr.head.key(), false
		}
	}
	if none {
		return r.end
	}
	i, _ := slices.BinarySearchFunc(f.list, first, func(p planned, k Key) int { return p.key.compare(k) })
	for ; i < len(f.list); i++ {
		if f.list[i].to != 0 { // else its record is damaged
			return f.list[i].to
		}
	}
	return r.end
}

// find returns what was planned for a key, or nil if it is not in the run.
func (f *flush) find(k Key) *planned {
	i, ok := slices.BinarySearchFunc(f.list, k, func(p planned, k Key) int { return p.key.compare(k) })
	if !ok || f.list[i].to == 0 {
		return nil
	}
	return &f.list[i]
}

// ordinal returns the number of a record in the run.
func (f *flush) ordinal(r *run, p *planned) uint32 {
	b := r.blockOf(p.to)
	i, _ := slices.BinarySearchFunc(f.list, r.blocks[b].first, func(p planned, k Key) int { return p.key.compare(k) })
	n := r.blocks[b].ordinal
	for ; f.list[i].to != p.to; i++ {
		if f.list[i].to != 0 {
			n++
		}
	}
	return n
}

// serveLocked makes the index serve the run instead of the segments.
func (f *flush) serveLocked(r *run) {
	x, l := f.c.s.index, f.c.log
	x.moves++
	live := int64(r.state.total().Bytes)
	for i := range x.inFlight() {
		fl := &x.flying[x.landed+i]
		fr := fl.from.fresh
		if fr == nil || !fr.flushing {
			continue
		}
		p := f.find(fl.key)
		if p == nil {
			continue
		}
		if fl.dropped {
			live += int64(p.length)
		}
		fr.land(fl.key.Seq)
		l.addLive(fl.ref.File, -int64(fl.ref.Len))
		fl.ref = Ref{File: r.id, Off: p.to, Len: p.length}
		fl.from = &r.source
	}
	for i := range f.list {
		if p := &f.list[i]; p.to == 0 { // damaged
			if e := f.segs[p.segment].fresh.get(p.key.Seq); e.state == entryWaits {
				x.countLocked(p.exchange, -1, p.length)
			}
		}
	}
	for _, g := range f.segs {
		fr := g.fresh
		g.live.Add(-fr.bytes)
		x.bytes -= fr.bytes
		x.keepLocked(fr.empty())
		x.fixLocked(&fr.source)
		x.discardIfDone(fr)
	}
	if r.count > 0 {
		r.live.Store(live)
		x.runs = append(x.runs, r)
		r.seek(r.next)
		x.fixLocked(&r.source)
	}
	x.calm.Broadcast()
}
