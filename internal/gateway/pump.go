package gateway

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/wire"
)

const (
	// idleBuffer is what a pump has while nothing comes, so that thousands of idle connections
	// cost little.
	idleBuffer = 1 << 10
	// busyBuffer is what it borrows to read into, and to gather rewritten frames in.
	busyBuffer = 32 << 10
	// mostSeen is the largest frame that a sieve is shown. RabbitMQ's frame-max is 128 KiB unless
	// set; what is larger passes as it is.
	mostSeen = 1 << 20
	// patience is how long a client may take nothing of what is written to it. RabbitMQ itself
	// waits for 15 to 30 s.
	patience = time.Minute
)

// interest is what a sieve wants of a frame whose head it was shown.
type interest uint8

const (
	untouched interest = iota // nothing: the frame passes
	whole                     // all of it, at once
	blocked                   // nothing may be read before the next letter
)

// sieve is what a pump shows frames to. Only the pump's goroutine calls it.
type sieve interface {
	// look says what is wanted of a frame. id is 0 for what is no method.
	look(h head, id wire.MethodID) interest
	// replace is given a whole frame and returns what passes in its stead, valid until the next
	// call; passes means the frame itself.
	replace(h head, id wire.MethodID, frame []byte) (instead []byte, passes bool)
	// resume returns what was kept of a channel and passes now, valid until the next call.
	resume(channel uint16) []byte
}

// pump carries octets from one socket to another. One goroutine owns it.
//
// Invariant: buf[start:end] was read and not dealt with, which between two reads is the beginning
// of one frame that the sieve wants to see whole, or of a frame's head. out was not written yet
// and comes before it.
type pump struct {
	src, dst net.Conn
	sieve    sieve
	mail     *mailbox
	done     <-chan struct{} // closed when the link ends
	buffers  *sync.Pool      // of *[busyBuffer]byte
	raw      *rawSource      // src, if it is a socket

	buf        []byte // idle, borrowed or, for a large frame, its own
	start, end int
	full       bool // the last read filled buf
	borrowed   *[busyBuffer]byte
	out        *[busyBuffer]byte // nil between two reads
	outLen     int

	rest int64 // octets of a frame that are still to pass unseen
	deaf bool  // what comes is not AMQP: it passes unseen

	impatient bool      // dst may not take nothing for longer than patience
	deadline  time.Time // of writes, as set last

	idle [idleBuffer]byte
}

// run carries until src ends, which is no error, or until something fails.
func (p *pump) run() error {
	defer p.giveBack()
	p.buf = p.idle[:]
	p.raw = newRawSource(p)
	for {
		n, err := p.fill()
		if n > 0 {
			if err := p.pass(); err != nil {
				return err
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = p.wake()
		}
		if err != nil {
			return err
		}
	}
}

// wake is called when a letter has ended a read.
func (p *pump) wake() error {
	if p.rest > 0 {
		p.mail.postpone() // pass opens it behind the frame
		return nil
	}
	if err := p.openMail(); err != nil {
		return err
	}
	// What was read may be a frame that waited for the letter.
	return p.pass()
}

// fill reads once.
func (p *pump) fill() (n int, err error) {
	if p.raw != nil {
		n, err = p.raw.fill()
	} else {
		size := idleBuffer
		if p.full {
			size = busyBuffer
		}
		p.makeRoom(size)
		n, err = p.src.Read(p.buf[p.end:])
	}
	p.end += n
	p.full = p.end == len(p.buf)
	return n, err
}

// makeRoom moves what is left to the front of a buffer of the given size, or of a larger one if it
// does not fit. Memory grows with what has come, not with what a frame's size promises.
func (p *pump) makeRoom(size int) {
	left := p.buf[p.start:p.end]
	for size <= len(left) {
		size = max(2*size, busyBuffer)
	}
	if size != len(p.buf) {
		p.exchange(size, left)
	} else if p.start > 0 {
		copy(p.buf, left)
	}
	p.start, p.end = 0, len(left)
}

// exchange takes a buffer of another size, with left at its front.
func (p *pump) exchange(size int, left []byte) {
	before := p.borrowed
	p.borrowed = nil
	switch size {
	case idleBuffer:
		p.buf = p.idle[:]
	case busyBuffer:
		p.borrowed = p.borrow()
		p.buf = p.borrowed[:]
	default:
		p.buf = make([]byte, size)
	}
	copy(p.buf, left)
	if before != nil {
		p.buffers.Put(before)
	}
}

func (p *pump) borrow() *[busyBuffer]byte { return p.buffers.Get().(*[busyBuffer]byte) }

func (p *pump) giveBack() {
	for _, b := range []*[busyBuffer]byte{p.borrowed, p.out} {
		if b != nil {
			p.buffers.Put(b)
		}
	}
	p.borrowed, p.out = nil, nil
}

// pass deals with all that was read, as far as that is possible, and writes what passes.
func (p *pump) pass() error {
	from := p.start // what lies between from and start passes as it is
	for p.start < p.end {
		if p.rest == 0 && p.mail.filled.Load() {
			if err := p.emit(p.buf[from:p.start]); err != nil {
				return err
			}
			from = p.start
			if err := p.openMail(); err != nil {
				return err
			}
		}
		b := p.buf[p.start:p.end]
		if p.rest > 0 || p.deaf {
			p.start += p.passRest(len(b))
			continue
		}
		h, id, ok := p.cut(b)
		if !ok {
			break
		}
		switch p.lookAt(h, id) {
		case untouched:
			p.rest = h.total()
			continue
		case blocked:
			if err := p.waitForMail(p.buf[from:p.start]); err != nil {
				return err
			}
			from = p.start
			continue
		}
		if int64(len(b)) < h.total() {
			break
		}
		frame := b[:h.total()]
		if frame[len(frame)-1] != wire.FrameEnd {
			p.deaf = true
			continue
		}
		instead, passes := p.sieve.replace(h, id, frame)
		if !passes {
			if err := errors.Join(p.emit(p.buf[from:p.start]), p.emit(instead)); err != nil {
				return err
			}
			from = p.start + len(frame)
		}
		p.start += len(frame)
	}
	return p.finish(p.buf[from:p.start])
}

// passRest passes what is there, n octets, of what nobody wants to see.
func (p *pump) passRest(n int) int {
	if p.deaf {
		return n
	}
	n = int(min(int64(n), p.rest))
	p.rest -= int64(n)
	return n
}

// cut reads what a frame starts with; not ok if more is needed for that.
func (p *pump) cut(b []byte) (h head, id wire.MethodID, ok bool) {
	if len(b) < headSize {
		return head{}, 0, false
	}
	h = cutHead(b)
	if h.kind != wire.FrameMethod || h.size < idSize {
		return h, 0, true
	}
	if len(b) < headSize+idSize {
		return head{}, 0, false
	}
	return h, wire.MethodID(binary.BigEndian.Uint32(b[headSize:])), true
}

// lookAt asks the sieve. What is no frame makes the pump deaf: the broker will find it, and say so.
func (p *pump) lookAt(h head, id wire.MethodID) interest {
	if !h.isKnown() {
		p.deaf = true
		return untouched
	}
	wanted := p.sieve.look(h, id)
	if wanted == whole && h.total() > mostSeen {
		return untouched
	}
	return wanted
}

// openMail does what the letters ask for.
func (p *pump) openMail() error {
	for _, l := range p.mail.take() {
		if err := p.emit(l.say); err != nil {
			return err
		}
		if !l.resume {
			continue
		}
		if err := p.emit(p.sieve.resume(l.channel)); err != nil {
			return err
		}
	}
	return p.flush()
}

// waitForMail writes what passes and waits for a letter, without reading.
func (p *pump) waitForMail(passing []byte) error {
	if err := p.finish(passing); err != nil {
		return err
	}
	for !p.mail.filled.Load() {
		select {
		case <-p.mail.signal:
		case <-p.done:
			return net.ErrClosed
		}
	}
	return p.openMail()
}

// emit appends to what will be written, or writes.
func (p *pump) emit(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if p.outLen+len(b) > busyBuffer {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if len(b) > busyBuffer {
		return p.write(b)
	}
	if p.out == nil {
		p.out = p.borrow()
	}
	p.outLen += copy(p.out[p.outLen:], b)
	return nil
}

// finish writes what was gathered and b, which without anything gathered is not copied.
func (p *pump) finish(b []byte) error {
	if p.outLen == 0 {
		return p.write(b)
	}
	return errors.Join(p.emit(b), p.flush())
}

// flush writes what was gathered.
func (p *pump) flush() error {
	if p.out == nil {
		return nil
	}
	err := p.write(p.out[:p.outLen])
	p.buffers.Put(p.out)
	p.out, p.outLen = nil, 0
	return err
}

// write writes all of b. Who takes something is given time for more.
func (p *pump) write(b []byte) error {
	for len(b) > 0 {
		p.setDeadline(false)
		n, err := p.dst.Write(b)
		b = b[n:]
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
		if err != nil {
			p.setDeadline(true)
		}
	}
	return nil
}

// setDeadline bounds the next write, if dst is one to be bounded. As setting one costs something
// it is set anew only when a quarter has passed.
func (p *pump) setDeadline(anew bool) {
	if !p.impatient {
		return
	}
	now := time.Now()
	if anew || p.deadline.Sub(now) < patience*3/4 {
		p.deadline = now.Add(patience)
		_ = p.dst.SetWriteDeadline(p.deadline) // a write to a closed socket says so
	}
}
