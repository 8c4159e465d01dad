package wire

import (
	"encoding/binary"
	"io"

	"github.com/duepost/duepost/internal/amqp"
)

const (
	// firstBuffer is what a Reader starts with, so that thousands of idle
	// connections cost little.
	firstBuffer = 4 << 10
	// busyBuffer is how far the buffer grows because reads fill it; beyond
	// that it grows only for a larger frame.
	busyBuffer = 64 << 10
	// sizeAllowance is by how much a frame may exceed frame-max: some clients
	// count without the frame's own eight octets, and RabbitMQ lets them.
	sizeAllowance = FrameOverhead
	// emptyReads is how many reads in a row may bring nothing.
	emptyReads = 100
)

// Reader serves the frames of one connection from one buffer, many frames per
// read. Not safe for concurrent use.
//
// Invariant: buf[start:end] was received and not yet served; buf[:start] is the
// memory of the frame served last, untouched until the next call.
type Reader struct {
	src        io.Reader
	buf        []byte
	start, end int
	max        uint32 // largest payload
	full       bool   // the last read filled the buffer
}

// NewReader returns a Reader of frames of at most frameMax octets, 0 for no
// limit but that of memory the sender has filled.
func NewReader(src io.Reader, frameMax uint32) *Reader {
	r := &Reader{src: src, buf: make([]byte, firstBuffer)}
	r.SetMaxFrame(frameMax)
	return r
}

// SetMaxFrame changes the limit for the frames to come.
func (r *Reader) SetMaxFrame(frameMax uint32) {
	const unlimited = 1<<31 - 1
	if frameMax == 0 || frameMax > unlimited {
		frameMax = unlimited
	}
	r.max = max(frameMax, MinFrameMax) - FrameOverhead + sizeAllowance
}

// Buffered returns how many received octets were not served yet.
func (r *Reader) Buffered() int { return r.end - r.start }

// Ready reports whether Next will return without reading from the source. If
// not, a caller flushes what it gathered before it calls Next.
func (r *Reader) Ready() bool {
	b := r.buf[r.start:r.end]
	if len(b) < frameStart {
		return false
	}
	size := binary.BigEndian.Uint32(b[3:])
	return size > r.max || len(b) >= FrameOverhead+int(size)
}

// Next returns the next frame. Its payload is valid until the next call.
//
// Errors: io.EOF if the source ended between frames, io.ErrUnexpectedEOF if
// within one; an *amqp.Error with code FRAME_ERROR if what came is no frame,
// after which the stream is out of step and must be closed; else the source's
// error, after which Next may be called again.
func (r *Reader) Next() (Frame, error) {
	for {
		b := r.buf[r.start:r.end]
		need := frameStart
		if len(b) >= frameStart {
			size := binary.BigEndian.Uint32(b[3:])
			if err := r.check(b[0], size); err != nil {
				return Frame{}, err
			}
			need = FrameOverhead + int(size)
			if len(b) >= need {
				if b[need-1] != FrameEnd {
					return Frame{}, badEnd(b[0], b[need-1])
				}
				r.start += need
				return Frame{
					Type:    b[0],
					Channel: binary.BigEndian.Uint16(b[1:]),
					Payload: b[frameStart : need-1 : need-1],
				}, nil
			}
		}
		if err := r.fill(need); err != nil {
			return Frame{}, err
		}
	}
}

// check refuses what no frame starts with, before its payload is waited for.
func (r *Reader) check(frameType uint8, size uint32) error {
	switch frameType {
	case FrameMethod, FrameHeader, FrameBody:
	case FrameHeartbeat:
		if size != 0 {
			return amqp.Errorf(amqp.FrameError, "heartbeat frame has a payload of %d octets", size)
		}
	default:
		return amqp.Errorf(amqp.FrameError, "unknown frame type %d", frameType)
	}
	if size > r.max {
		return amqp.Errorf(amqp.FrameError,
			"frame_too_large: type %d, payload of %d octets, %d are allowed",
			frameType, size, r.max-sizeAllowance)
	}
	return nil
}

func badEnd(frameType, end byte) error {
	return amqp.Errorf(amqp.FrameError,
		"invalid_frame_end_marker: type %d ends with octet %d instead of %d", frameType, end, FrameEnd)
}

// fill reads once, after making room for need octets from r.start on.
func (r *Reader) fill(need int) error {
	r.makeRoom(need)
	for range emptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.full = r.end == len(r.buf)
		switch {
		case n > 0:
			return nil // an error comes back on the next read
		case err == io.EOF && r.end > r.start:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom moves what is unserved to the front of the buffer, or of a larger
// one if need asks for it or reads have been filling this one.
func (r *Reader) makeRoom(need int) {
	size := len(r.buf)
	if r.full && size < busyBuffer {
		size *= 2
	}
	for size < need {
		// In steps, so that memory follows what was received and not what a
		// frame's size promises.
		if r.end-r.start < size {
			break
		}
		size *= 2
	}
	old := r.buf
	if size > len(old) {
		r.buf = make([]byte, size)
	} else if r.start == 0 {
		return
	}
	r.end = copy(r.buf, old[r.start:r.end])
	r.start = 0
}
