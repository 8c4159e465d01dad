package store

import "fmt"

const (
	findingOnDiskBytes = 44
	maxPerPage         = 64 << 10 / findingOnDiskBytes
)

func (f *finding) encode(b []byte) {
	_ = b[findingOnDiskBytes-1]
	le.PutUint32(b, f.queue)
	le.PutUint64(b[4:], f.pos)
	le.PutUint64(b[12:], uint64(f.arrived))
	le.PutUint64(b[20:], uint64(f.ttl))
	le.PutUint32(b[28:], f.ref.File)
	le.PutUint32(b[32:], f.ref.Off)
	le.PutUint32(b[36:], f.ref.Len)
	le.PutUint32(b[40:], uint32(f.flags))
}

func (f *finding) decode(b []byte) {
	_ = b[findingOnDiskBytes-1]
	f.queue = le.Uint32(b)
	f.pos = le.Uint64(b[4:])
	f.arrived = int64(le.Uint64(b[12:]))
	f.ttl = int64(le.Uint64(b[20:]))
	f.ref = Ref{File: le.Uint32(b[28:]), Off: le.Uint32(b[32:]), Len: le.Uint32(b[36:])}
	f.flags = uint8(le.Uint32(b[40:]))
}

// findingRun is a sorted run: what is in rest, then what is on the pages.
type findingRun struct {
	number  int // of two messages with one position, that of the higher run holds
	rest    []finding
	scratch *Scratch
	pages   []Page
	left    int // on the pages
	perPage int
	page    []byte
}

// top is the first of a run that is not empty.
func (r *findingRun) top() *finding { return &r.rest[0] }

// fill reads a page if rest is empty, and reports whether there is a top now.
func (r *findingRun) fill() (bool, error) {
	if len(r.rest) > 0 || r.left == 0 {
		return len(r.rest) > 0, nil
	}
	if r.page == nil {
		r.page = make([]byte, r.perPage*findingOnDiskBytes)
	}
	if err := r.scratch.Read(r.pages[0], r.page); err != nil {
		return false, fmt.Errorf("read entries of queues: %w", err)
	}
	if r.scratch.Free(r.pages[0]) {
		r.scratch.Trim()
	}
	r.pages = r.pages[1:]
	n := min(r.left, r.perPage)
	r.left -= n
	r.rest = make([]finding, n)
	for i := range r.rest {
		r.rest[i].decode(r.page[i*findingOnDiskBytes:])
	}
	return true, nil
}

// gathered is what is left in all queues, to be read once in ascending order of queue and
// position: a merge of runs.
//
// Invariant: runs is a heap, runs[i] not greater than runs[2i+1] and runs[2i+2]. None is empty.
type gathered struct {
	log     *log
	noQueue map[uint32]bool
	scratch *Scratch
	runs    []*findingRun
	added   int
	settled cover
	next    finding // the first message left, if has
	has     bool
	err     error
}

// add adds a run, later than those before.
func (g *gathered) add(r findingRun) {
	r.number = g.added
	g.added++
	ok, err := r.fill()
	if err != nil {
		g.err = err
	}
	if !ok {
		return
	}
	g.runs = append(g.runs, &r)
	for i := len(g.runs) - 1; i > 0; i = (i - 1) / 2 {
		if parent := (i - 1) / 2; g.less(i, parent) {
			g.runs[i], g.runs[parent] = g.runs[parent], g.runs[i]
		}
	}
}

func (g *gathered) less(i, k int) bool {
	a, b := g.runs[i], g.runs[k]
	if c := a.top().compare(b.top()); c != 0 {
		return c < 0
	}
	return a.number < b.number
}

// pop takes the least of all runs.
func (g *gathered) pop() (f finding, ok bool) {
	if len(g.runs) == 0 || g.err != nil {
		return finding{}, false
	}
	r := g.runs[0]
	f = *r.top()
	r.rest = r.rest[1:]
	more, err := r.fill()
	if g.err = err; !more {
		last := len(g.runs) - 1
		g.runs[0] = g.runs[last]
		g.runs = g.runs[:last]
	}
	g.down()
	return f, true
}

func (g *gathered) down() {
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(g.runs); k++ {
			if g.less(k, least) {
				least = k
			}
		}
		if least == i {
			return
		}
		g.runs[i], g.runs[least] = g.runs[least], g.runs[i]
		i = least
	}
}

// peek returns the first message that is left.
func (g *gathered) peek() *finding {
	for !g.has {
		f, ok := g.pop()
		switch {
		case !ok:
			return nil
		case f.isSettled():
			if !g.settled.reaches(&f) {
				g.settled = cover{queue: f.queue}
			}
			g.settled.extend(&f)
		case g.settled.covers(&f) || g.noQueue[f.queue] || g.isAgain(&f):
			g.log.addLive(f.ref.File, -int64(f.ref.Len))
		default:
			g.next, g.has = f, true
		}
	}
	return &g.next
}

// isAgain reports whether a later place of the message follows, or that it is settled.
func (g *gathered) isAgain(f *finding) bool {
	if len(g.runs) == 0 {
		return false
	}
	next := g.runs[0].top()
	return next.queue == f.queue && next.pos == f.pos
}

// read fills dst with entries of a queue and returns how many they are. What is left of queues
// before it is passed over.
func (g *gathered) read(queue uint32, dst []Entry) (n int, err error) {
	for n < len(dst) {
		f := g.peek()
		if f == nil || f.queue > queue {
			break
		}
		if g.has = false; f.queue == queue {
			dst[n] = f.entry()
			dst[n].Body = g.log.bodies.queuedLength(queue, f.pos)
			n++
		}
	}
	if len(g.runs) == 0 {
		g.scratch.Close()
	}
	return n, g.err
}
