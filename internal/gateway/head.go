package gateway

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/wire"
)

const (
	// headSize is the size of what every frame starts with. [amqp 4.2.3]
	headSize = wire.FrameOverhead - 1
	// idSize is the size of a method's class and method id.
	idSize = 4
)

// head is what a frame starts with.
type head struct {
	kind    uint8
	channel uint16
	size    uint32 // of the payload
}

// cutHead reads the head that b starts with; b has at least headSize octets.
func cutHead(b []byte) head {
	return head{b[0], binary.BigEndian.Uint16(b[1:]), binary.BigEndian.Uint32(b[3:])}
}

// isKnown reports whether a frame can start like this.
func (h head) isKnown() bool {
	switch h.kind {
	case wire.FrameMethod, wire.FrameHeader, wire.FrameBody, wire.FrameHeartbeat:
		return true
	}
	return false
}

// total is the size of the whole frame.
func (h head) total() int64 { return wire.FrameOverhead + int64(h.size) }

// payload is that of a whole frame.
func payload(frame []byte) []byte { return frame[headSize : len(frame)-1] }

// arguments is what follows the method id in a whole method frame.
func arguments(frame []byte) []byte { return frame[headSize+idSize : len(frame)-1] }
