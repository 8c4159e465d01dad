package broker

import (
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// pager keeps what the entries of all queues take in memory near a budget. Beyond it, it writes
// chunks that are far from being delivered to a scratch file, and reads ahead of who delivers.
// Whoever delivers faster than that reads for himself; see Queue.loadLocked.
//
// When the file cannot be written the entries stay in memory, and it is tried again.
//
// Role: one goroutine (run), from start to stop. It sleeps until it is told that the budget is
// exceeded, that somebody comes near a paged chunk, or that the file has shrunk.
type pager struct {
	scratch *store.Scratch
	budget  int64 // blocks
	log     *slog.Logger
	blocks  sync.Pool    // of *[blockSize]entry
	buffers sync.Pool    // of *[pageBytes]byte
	inUse   atomic.Int64 // blocks
	limit   atomic.Int64 // blocks in use at which there is something to do

	wanted chan struct{} // holds one signal
	ahead  chan nextChunk
	quit   chan struct{}
	done   chan struct{}

	// Of whoever runs makeRoom.

	copied [chunkSize][blockSize]entry
	buffer [pageBytes]byte

	mu     sync.Mutex // guards queues; a leaf lock, taken under a queue's
	queues map[*Queue]struct{}
}

// nextChunk is what a queue will want soon.
type nextChunk struct {
	queue *Queue
	pos   uint64 // any of the chunk
}

// pageRetry is how long after a fault of the scratch file the next attempt is.
const pageRetry = time.Second

func newPager(scratch *store.Scratch, budgetBytes int64, log *slog.Logger) *pager {
	p := &pager{
		scratch: scratch,
		budget:  budgetBytes / (blockSize * entryBytes),
		log:     log,
		wanted:  make(chan struct{}, 1),
		ahead:   make(chan nextChunk, 64),
		quit:    make(chan struct{}),
		done:    make(chan struct{}),
		queues:  make(map[*Queue]struct{}),
	}
	p.blocks.New = func() any { return new([blockSize]entry) }
	p.buffers.New = func() any { return new([pageBytes]byte) }
	p.limit.Store(p.budget)
	return p
}

// take returns a block for entries.
func (p *pager) take() *[blockSize]entry {
	if p.inUse.Add(1) > p.limit.Load() {
		p.wake()
	}
	return p.blocks.Get().(*[blockSize]entry)
}

// give takes a block back.
func (p *pager) give(b *[blockSize]entry) {
	p.inUse.Add(-1)
	p.blocks.Put(b)
}

// free takes a page back. Like take and give it may be called under a queue's lock.
func (p *pager) free(page store.Page) {
	if p.scratch.Free(page) {
		p.wake()
	}
}

func (p *pager) wake() {
	select {
	case p.wanted <- struct{}{}:
	default: // it has a signal waiting
	}
}

// add says that a queue may have chunks to page.
func (p *pager) add(q *Queue) {
	p.mu.Lock()
	p.queues[q] = struct{}{}
	p.mu.Unlock()
}

func (p *pager) remove(q *Queue) {
	p.mu.Lock()
	delete(p.queues, q)
	p.mu.Unlock()
}

// readAhead has a chunk loaded before it is needed, if there is time.
func (p *pager) readAhead(q *Queue, pos uint64) {
	select {
	case p.ahead <- nextChunk{q, pos}:
	default: // whoever needs it reads it
	}
}

func (p *pager) start() { go p.run() }

// stop ends the goroutine and removes the file. What is paged cannot be read any more.
func (p *pager) stop() {
	close(p.quit)
	<-p.done
	p.scratch.Close()
}

func (p *pager) run() {
	defer close(p.done)
	var retry <-chan time.Time
	for {
		select {
		case <-p.quit:
			return
		case next := <-p.ahead:
			next.queue.loadAhead(next.pos)
			continue
		case <-p.wanted:
		case <-retry:
		}
		p.scratch.Trim()
		retry = nil
		if err := p.makeRoom(); err != nil {
			p.log.Warn("entries of queues stay in memory: cannot write scratch file", "err", err)
			retry = time.After(pageRetry)
		}
	}
}

// makeRoom pages chunks until the budget is kept with some room. If that is not possible because
// of what the chunks are like, it is not tried again before there are some more.
func (p *pager) makeRoom() error {
	if p.inUse.Load() <= p.budget {
		p.limit.Store(p.budget)
		return nil
	}
	err := p.sweep(nearChunks)
	if err == nil && !p.hasRoom() {
		err = p.sweep(0)
	}
	p.limit.Store(max(p.budget, p.inUse.Load()+p.budget/8))
	return err
}

func (p *pager) hasRoom() bool { return p.inUse.Load() <= p.budget-p.budget/8 }

// sweep goes through the queues in no particular order.
func (p *pager) sweep(near uint64) error {
	p.mu.Lock()
	queues := make([]*Queue, 0, len(p.queues))
	for q := range p.queues {
		queues = append(queues, q)
	}
	p.mu.Unlock()
	for _, q := range queues {
		if p.hasRoom() {
			return nil
		}
		if err := q.pageOut(near); err != nil {
			return err
		}
	}
	return nil
}

// copyOf keeps the entries of a chunk for write.
func (p *pager) copyOf(c *chunk) {
	for i := range c.blocks {
		if e := c.blocks[i].entries; e != nil {
			p.copied[i] = *e
		}
	}
}

// write writes what copyOf has kept.
func (p *pager) write() (store.Page, error) {
	for i := range p.copied {
		for k := range p.copied[i] {
			p.copied[i][k].encode(p.buffer[(i*blockSize+k)*entryBytes:])
		}
	}
	return p.scratch.Write(p.buffer[:])
}

// read reads the entries of those blocks that are live.
func (p *pager) read(at store.Page, live uint16) (page, error) {
	buf := p.buffers.Get().(*[pageBytes]byte)
	defer p.buffers.Put(buf)
	var entries page
	if err := p.scratch.Read(at, buf[:]); err != nil {
		return entries, err
	}
	for ; live != 0; live &= live - 1 {
		i := bits.TrailingZeros16(live)
		entries[i] = p.take()
		for k := range entries[i] {
			entries[i][k].decode(buf[(i*blockSize+k)*entryBytes:])
		}
	}
	return entries, nil
}

// discard takes back what read returned and nobody wants any more.
func (p *pager) discard(entries *page) {
	for _, b := range entries {
		if b != nil {
			p.give(b)
		}
	}
}
