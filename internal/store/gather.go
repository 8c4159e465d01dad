package store

import (
	"cmp"
	"fmt"
	"slices"
)

// gathering is an external sort of what replay finds about queues: messages at positions, and
// stretches of positions that are settled. It is in memory as long as there is little; beyond
// that it is sorted and goes to scratch files, as runs that are merged when they are read.
//
// What is settled holds for good, in whatever order it is met, and of several messages with one
// position the last holds: it is the cleaner's newest copy.
//
// What is live is accounted for when it is sorted. A message that only another run tells to be
// gone is accounted for until it is read: too much keeps files, too little would lose them.
type gathering struct {
	log     *log
	noQueue map[uint32]bool // of the rebuild
	limit   int             // of buf before what is left in it is spilled; 0 = never
	full    int             // length of buf at which it is sorted
	perPage int             // of the scratch files
	buf     []finding
	order   uint32 // of the next in buf
	runs    []findingRun
	scratch *Scratch
	noRoom  bool // it could not be written, and this was logged
}

// finding is one thing that replay found.
type finding struct {
	queue   uint32
	order   uint32 // within buf: the later it was met the higher
	pos     uint64 // or the first of a stretch
	arrived int64  // or how many the stretch has
	ttl     int64
	ref     Ref
	flags   uint8
}

// Flags of finding.
const (
	findingSettled    = 1 << iota // it is a stretch
	findingPersistent             // as in Entry
	findingMoved                  // as in Entry
)

func findingMessage(queue uint32, e *Entry) finding {
	f := finding{queue: queue, pos: e.Pos, arrived: e.Arrived, ttl: e.TTL, ref: e.Ref}
	if e.Persistent {
		f.flags |= findingPersistent
	}
	if e.moved {
		f.flags |= findingMoved
	}
	return f
}

func (f *finding) entry() Entry {
	return Entry{
		Pos: f.pos, Ref: f.ref, Arrived: f.arrived, TTL: f.ttl,
		Persistent: f.flags&findingPersistent != 0, moved: f.flags&findingMoved != 0,
	}
}

func (f *finding) isSettled() bool { return f.flags&findingSettled != 0 }

// end is behind the last position of a stretch.
func (f *finding) end() uint64 { return f.pos + uint64(f.arrived) }

// compare orders by queue and position, and what was met first before what was met later.
func (f *finding) compare(g *finding) int {
	if f.queue != g.queue {
		return cmp.Compare(f.queue, g.queue)
	}
	if f.pos != g.pos {
		return cmp.Compare(f.pos, g.pos)
	}
	return cmp.Compare(f.order, g.order)
}

const findingBytes = 48 // of a finding in memory

func newGathering(l *log, noQueue map[uint32]bool) *gathering {
	g := &gathering{log: l, noQueue: noQueue, full: 1 << 16}
	if l.o.GatherBytes > 0 {
		g.limit = max(16, int(l.o.GatherBytes/findingBytes))
		g.full = g.limit
	}
	g.perPage = min(g.full/8, maxPerPage)
	g.scratch = newScratch(l.fs, l.dir, "open", g.perPage*findingOnDiskBytes)
	return g
}

func (g *gathering) settle(queue uint32, first, n uint64) {
	if k := len(g.buf); k > 0 {
		last := &g.buf[k-1]
		if last.isSettled() && last.queue == queue && last.end() == first {
			last.arrived += int64(n)
			return
		}
	}
	g.add(finding{queue: queue, pos: first, arrived: int64(n), flags: findingSettled})
}

func (g *gathering) add(f finding) {
	if len(g.buf) >= g.full {
		g.reduce()
		if g.limit > 0 && len(g.buf) > g.limit/2 {
			g.spill()
		}
		g.full = max(g.full, 2*len(g.buf))
	}
	f.order = g.order
	g.order++
	g.buf = append(g.buf, f)
}

// reduce sorts the buffer, joins stretches, and removes messages that are gone.
func (g *gathering) reduce() {
	slices.SortFunc(g.buf, func(a, b finding) int { return a.compare(&b) })
	var c cover
	kept := g.buf[:0]
	for i := range g.buf {
		f := g.buf[i]
		f.order = 0
		switch {
		case g.noQueue[f.queue]:
		case !f.isSettled():
			if !c.covers(&f) && !f.isAgain(g.buf, i+1) {
				kept = append(kept, f)
			}
		case c.reaches(&f):
			kept[c.at].arrived = int64(max(c.end, f.end()) - kept[c.at].pos)
			c.extend(&f)
		default:
			c = cover{queue: f.queue, end: f.end(), at: len(kept)}
			kept = append(kept, f)
		}
	}
	g.buf, g.order = kept, 1
}

// isAgain reports whether list[i], if there is one, is a later place of the message, or tells
// that it is settled.
func (f *finding) isAgain(list []finding, i int) bool {
	return i < len(list) && list[i].queue == f.queue && list[i].pos == f.pos
}

// cover is how far the positions of a queue are known to be settled, going through them in order.
type cover struct {
	queue uint32
	end   uint64
	at    int // where the stretch is kept
}

func (c *cover) covers(f *finding) bool  { return c.queue == f.queue && f.pos < c.end }
func (c *cover) reaches(f *finding) bool { return c.queue == f.queue && f.pos <= c.end && c.end > 0 }
func (c *cover) extend(f *finding)       { c.end = max(c.end, f.end()) }

// account says what is live of the sorted buffer.
func (g *gathering) account() {
	for i := range g.buf {
		f := &g.buf[i]
		s := g.log.segment(f.ref.File)
		if f.isSettled() || s == nil {
			continue
		}
		s.live.Add(int64(f.ref.Len))
		if f.flags&findingMoved != 0 {
			s.moved = append(s.moved, movedEntry{
				off: f.ref.Off, queue: f.queue, pos: f.pos, arrived: f.arrived,
				life: lifeOf(f.ttl, f.flags&findingPersistent != 0),
			})
		}
	}
}

// spill makes the sorted buffer a run. If there is no room for it on the disk it stays in memory.
func (g *gathering) spill() {
	g.account()
	run, err := g.write()
	if err != nil {
		if !g.noRoom {
			g.noRoom = true
			g.log.logger.Warn("entries of queues stay in memory: cannot write scratch file", "err", err)
		}
		run = findingRun{rest: slices.Clone(g.buf)}
	}
	g.runs = append(g.runs, run)
	g.buf = g.buf[:0]
}

// write writes the sorted buffer to the scratch files.
func (g *gathering) write() (findingRun, error) {
	run := findingRun{scratch: g.scratch, left: len(g.buf), perPage: g.perPage}
	page := make([]byte, g.perPage*findingOnDiskBytes)
	for from := 0; from < len(g.buf); from += g.perPage {
		n := min(g.perPage, len(g.buf)-from)
		for i := range n {
			g.buf[from+i].encode(page[i*findingOnDiskBytes:])
		}
		p, err := g.scratch.Write(page)
		if err != nil {
			for _, p := range run.pages {
				g.scratch.Free(p)
			}
			return findingRun{}, fmt.Errorf("spill entries of queues: %w", err)
		}
		run.pages = append(run.pages, p)
	}
	return run, nil
}

// finish sorts the rest and returns all of it.
func (g *gathering) finish() *gathered {
	g.reduce()
	g.account()
	list := &gathered{log: g.log, noQueue: g.noQueue, scratch: g.scratch}
	for i := range g.runs {
		list.add(g.runs[i])
	}
	list.add(findingRun{rest: g.buf})
	return list
}
