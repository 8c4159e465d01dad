package wire

import (
	"encoding/binary"
	"slices"
)

// Frame types. [amqp 4.2.3]
const (
	FrameMethod    uint8 = 1
	FrameHeader    uint8 = 2
	FrameBody      uint8 = 3
	FrameHeartbeat uint8 = 8
)

const (
	// FrameEnd is the octet behind every payload. [amqp 4.2.3]
	FrameEnd byte = 0xCE
	// FrameOverhead is what a frame adds to its payload: type, channel, size
	// and end.
	FrameOverhead = frameStart + 1
	// MinFrameMax is the smallest frame-max a peer may ask for. [amqp 4.2.3]
	MinFrameMax = 4096

	// frameStart is the size of type, channel and payload size.
	frameStart = 1 + 2 + 4
)

// ProtocolHeader is what a client sends first, and what a server answers to
// anything else. [amqp 4.2.2]
const ProtocolHeader = "AMQP\x00\x00\x09\x01"

// Frame is one frame as it was read.
type Frame struct {
	Type    uint8
	Channel uint16
	Payload []byte // a view; see Reader.Next
}

// AppendFrame appends a frame.
func AppendFrame(dst []byte, frameType uint8, channel uint16, payload []byte) []byte {
	dst = appendStart(dst, frameType, channel, len(payload))
	dst = append(dst, payload...)
	return append(dst, FrameEnd)
}

// AppendMethod appends a method frame.
func AppendMethod(dst []byte, channel uint16, m Method) []byte {
	start := len(dst)
	dst = appendStart(dst, FrameMethod, channel, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.ID()))
	dst = m.Append(dst)
	size := len(dst) - start - frameStart
	binary.BigEndian.PutUint32(dst[start+3:], uint32(size))
	return append(dst, FrameEnd)
}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(dst []byte) []byte {
	return append(dst, FrameHeartbeat, 0, 0, 0, 0, 0, 0, FrameEnd)
}

// AppendAck appends basic.ack.
func AppendAck(dst []byte, channel uint16, deliveryTag uint64, multiple bool) []byte {
	return appendSettle(dst, channel, BasicAckID, deliveryTag, packBits(multiple))
}

// AppendNack appends basic.nack, without requeue, which means nothing to a
// client. [rmq confirms]
func AppendNack(dst []byte, channel uint16, deliveryTag uint64, multiple bool) []byte {
	return appendSettle(dst, channel, BasicNackID, deliveryTag, packBits(multiple))
}

func appendSettle(dst []byte, channel uint16, id MethodID, tag uint64, bits byte) []byte {
	dst = appendStart(dst, FrameMethod, channel, 4+8+1)
	dst = binary.BigEndian.AppendUint32(dst, uint32(id))
	dst = binary.BigEndian.AppendUint64(dst, tag)
	return append(dst, bits, FrameEnd)
}

// AppendContentHeader appends a header frame; props are encoded properties.
func AppendContentHeader(dst []byte, channel, class uint16, bodySize uint64, props []byte) []byte {
	dst = appendStart(dst, FrameHeader, channel, headerPrefix+len(props))
	dst = binary.BigEndian.AppendUint16(dst, class)
	dst = append(dst, 0, 0) // weight
	dst = binary.BigEndian.AppendUint64(dst, bodySize)
	dst = append(dst, props...)
	return append(dst, FrameEnd)
}

// AppendBody appends body in as many body frames as frameMax asks for, none if
// it is empty. frameMax counts whole frames; 0 means no limit. [amqp 4.2.6.2]
func AppendBody(dst []byte, channel uint16, body []byte, frameMax uint32) []byte {
	most := bodyPart(frameMax)
	for len(body) > most {
		dst = AppendFrame(dst, FrameBody, channel, body[:most])
		body = body[most:]
	}
	if len(body) == 0 {
		return dst
	}
	return AppendFrame(dst, FrameBody, channel, body)
}

// AppendContent appends a header frame and the body frames.
func AppendContent(dst []byte, channel uint16, props, body []byte, frameMax uint32) []byte {
	dst = slices.Grow(dst, contentSize(props, body, frameMax))
	dst = AppendContentHeader(dst, channel, ClassBasic, uint64(len(body)), props)
	return AppendBody(dst, channel, body, frameMax)
}

// contentSize returns how many octets AppendContent appends.
func contentSize(props, body []byte, frameMax uint32) int {
	most := bodyPart(frameMax)
	frames := (len(body) + most - 1) / most
	return FrameOverhead + headerPrefix + len(props) + frames*FrameOverhead + len(body)
}

// bodyPart returns how much of a body fits into one frame.
func bodyPart(frameMax uint32) int {
	const unlimited = 1<<31 - 1
	if frameMax == 0 || frameMax > unlimited {
		return unlimited
	}
	return int(max(frameMax, MinFrameMax)) - FrameOverhead
}

// appendStart appends what precedes a payload of the given size.
func appendStart(dst []byte, frameType uint8, channel uint16, size int) []byte {
	return append(dst, frameType, byte(channel>>8), byte(channel),
		byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
}
