package server

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// writeChunk bounds one write call, so that a slow reader's progress shows.
const writeChunk = 256 << 10

// keepBuffer is the largest buffer kept for reuse; what a huge message needed
// is given back.
const keepBuffer = 2 << 20

// output is what a connection has to say: frames appended by anyone, written by
// one goroutine. Two buffers take turns, one being filled, one being written.
//
// Invariant: pending is the length of both; while asleep is true buf is empty.
type output struct {
	nc   net.Conn
	wake chan struct{} // capacity 1: the writer sleeps until something is here
	room chan struct{} // capacity 1: pending has sunk
	// drained is called by the writer, without locks, when pending has sunk below
	// half of high and someone was refused meanwhile. It must not block.
	drained func()
	high    int64
	// patience is how long the kernel may take nothing.
	patience time.Duration

	pending atomic.Int64
	refused atomic.Bool   // full has said yes since drained was called
	writing atomic.Bool   // a write call is under way
	calls   atomic.Uint64 // write calls that ended
	written atomic.Uint64 // octets the kernel has taken
	cut     atomic.Uint64 // the call that a deadline was set for, 1 is the first
	final   atomic.Bool   // finish has set the last deadline

	mu     sync.Mutex // guards all below
	buf    []byte
	flying int  // length of what is being written
	asleep bool // the writer waits on wake
	sealed bool // nothing may be appended any more, a close method was the last
	ending bool // the writer ends when all is written
	broken bool // a write failed, nothing will be written any more
}

func newOutput(nc net.Conn, high int, patience time.Duration) *output {
	return &output{
		nc:       nc,
		wake:     make(chan struct{}, 1),
		room:     make(chan struct{}, 1),
		drained:  func() {},
		high:     int64(high),
		patience: patience,
	}
}

// begin locks the output and returns the buffer to append frames to. end must
// follow.
func (o *output) begin() []byte {
	o.mu.Lock()
	return o.buf
}

// end takes what begin returned, with frames appended, unlocks and wakes the
// writer. It reports whether the frames will be written.
func (o *output) end(b []byte) bool { return o.commit(b, false) }

// endSealed is end for a close method: nothing can be appended after it, except
// by another endSealed.
func (o *output) endSealed(b []byte) bool { return o.commit(b, true) }

func (o *output) commit(b []byte, seal bool) bool {
	if o.broken || o.ending || o.sealed && !seal {
		o.mu.Unlock()
		return false
	}
	o.sealed = o.sealed || seal
	o.setLocked(b)
	wake := o.asleep
	o.asleep = false
	o.mu.Unlock()
	if wake {
		o.wake <- struct{}{}
	}
	return true
}

// finish lets the writer end once everything is written, or at the deadline.
func (o *output) finish(deadline time.Time) {
	o.final.Store(true)
	_ = o.nc.SetWriteDeadline(deadline)
	o.mu.Lock()
	o.sealed = true
	o.ending = true
	wake := o.asleep
	o.asleep = false
	o.mu.Unlock()
	if wake {
		o.wake <- struct{}{}
	}
}

func (o *output) setLocked(b []byte) {
	o.buf = b
	o.pending.Store(int64(len(b) + o.flying))
}

// full reports whether too much waits to be written to deliver more. Whoever
// got yes is told by drained.
func (o *output) full() bool {
	if o.pending.Load() < o.high {
		return false
	}
	o.refused.Store(true)
	// The writer may have emptied it between the two: then nobody would be told.
	return o.pending.Load() >= o.high
}

// run writes what gathers until finish is called or a write fails.
func (o *output) run() error {
	var b []byte
	for {
		var ok bool
		if b, ok = o.take(b); !ok {
			return nil
		}
		if err := o.write(b); err != nil {
			o.setBroken()
			return err
		}
		if cap(b) > keepBuffer {
			b = nil
		}
		o.sunk()
	}
}

// take waits for frames and exchanges the full buffer for the given one, which
// was written. It returns false when the writer shall end.
func (o *output) take(empty []byte) (full []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf) == 0 {
		if o.ending {
			return nil, false
		}
		o.asleep = true
		o.mu.Unlock()
		<-o.wake
		// Whoever woke us is likely to append more: let it, then write all at once.
		runtime.Gosched()
		o.mu.Lock()
	}
	full = o.buf
	o.flying = len(full)
	o.setLocked(empty[:0])
	return full, true
}

// write writes b. A write call that was cut by a deadline is not the end if the
// kernel took something, or if the deadline was meant for the call before.
func (o *output) write(b []byte) error {
	for len(b) > 0 {
		call := o.calls.Load() + 1
		o.writing.Store(true)
		n, err := o.nc.Write(b[:min(len(b), writeChunk)])
		o.writing.Store(false)
		o.calls.Store(call)
		o.written.Add(uint64(n))
		b = b[n:]
		if err == nil {
			continue
		}
		stuck := n == 0 && o.cut.Load() == call
		if stuck || o.final.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		_ = o.nc.SetWriteDeadline(time.Now().Add(o.patience))
	}
	return nil
}

// cutCall makes the write call under way return, if it is still the one after
// the given number of calls.
func (o *output) cutCall(calls uint64) {
	o.cut.Store(calls + 1)
	_ = o.nc.SetWriteDeadline(time.Now())
}

// sunk accounts for a finished write and tells who waits for room.
func (o *output) sunk() {
	o.mu.Lock()
	o.flying = 0
	o.setLocked(o.buf)
	o.mu.Unlock()
	select {
	case o.room <- struct{}{}:
	default:
	}
	if o.pending.Load() <= o.high/2 && o.refused.Swap(false) {
		o.drained()
	}
}

func (o *output) setBroken() {
	o.mu.Lock()
	o.broken = true
	o.buf = nil
	o.flying = 0
	o.setLocked(nil)
	o.mu.Unlock()
}
