package wire

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
)

// BasicPublish publishes the content that follows. Its strings are views and
// may hold any octets.
type BasicPublish struct {
	Exchange   []byte
	RoutingKey []byte
	// ExchangeAndKey is both names as they were read, two adjacent short
	// strings, in the form AppendDeliver takes. Decode sets it, Append does
	// not look at it.
	ExchangeAndKey []byte
	Mandatory      bool
	Immediate      bool
}

// ID implements Method.
func (*BasicPublish) ID() MethodID { return BasicPublishID }

// Decode implements Method.
func (m *BasicPublish) Decode(src []byte) error {
	// Written out, as this runs once per published message.
	if len(src) < 2+1+1+1 {
		return publishFault(src)
	}
	names := src[2:] // after the reserved short
	exchange, rest, ok := amqp.CutShortStr(names)
	if !ok {
		return publishFault(src)
	}
	key, rest, ok := amqp.CutShortStr(rest)
	if !ok || len(rest) != 1 {
		return publishFault(src)
	}
	m.Exchange, m.RoutingKey = exchange, key
	m.ExchangeAndKey = names[: len(names)-1 : len(names)-1]
	m.Mandatory = rest[0]&1 != 0
	m.Immediate = rest[0]&2 != 0
	return nil
}

// publishFault says what is wrong with arguments that BasicPublish refused.
func publishFault(src []byte) error {
	a := arguments{rest: src}
	a.short()
	a.shortView()
	a.shortView()
	a.octet()
	return a.failure(BasicPublishID)
}

// Append implements Method.
func (m *BasicPublish) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Exchange)
	dst = amqp.AppendShortStr(dst, m.RoutingKey)
	return append(dst, packBits(m.Mandatory, m.Immediate))
}

// BasicReturn gives back the content that follows as undeliverable.
type BasicReturn struct {
	ReplyCode  uint16
	ReplyText  string
	Exchange   []byte
	RoutingKey []byte
}

// ID implements Method.
func (*BasicReturn) ID() MethodID { return BasicReturnID }

// Decode implements Method.
func (m *BasicReturn) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ReplyCode = a.short()
	m.ReplyText = a.shortStr()
	m.Exchange = a.shortView()
	m.RoutingKey = a.shortView()
	return a.end(BasicReturnID)
}

// Append implements Method.
func (m *BasicReturn) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, m.ReplyCode)
	dst = amqp.AppendShortStr(dst, m.ReplyText)
	dst = amqp.AppendShortStr(dst, m.Exchange)
	return amqp.AppendShortStr(dst, m.RoutingKey)
}

// BasicDeliver hands the content that follows to a consumer.
type BasicDeliver struct {
	ConsumerTag string
	DeliveryTag uint64
	Redelivered bool
	Exchange    []byte
	RoutingKey  []byte
}

// ID implements Method.
func (*BasicDeliver) ID() MethodID { return BasicDeliverID }

// Decode implements Method.
func (m *BasicDeliver) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ConsumerTag = a.shortStr()
	m.DeliveryTag = a.longLong()
	a.bits(&m.Redelivered)
	m.Exchange = a.shortView()
	m.RoutingKey = a.shortView()
	return a.end(BasicDeliverID)
}

// Append implements Method.
func (m *BasicDeliver) Append(dst []byte) []byte {
	dst = amqp.AppendShortStr(dst, m.ConsumerTag)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, packBits(m.Redelivered))
	dst = amqp.AppendShortStr(dst, m.Exchange)
	return amqp.AppendShortStr(dst, m.RoutingKey)
}

// BasicGetOk answers BasicGet with the content that follows.
type BasicGetOk struct {
	DeliveryTag  uint64
	Redelivered  bool
	Exchange     []byte
	RoutingKey   []byte
	MessageCount uint32
}

// ID implements Method.
func (*BasicGetOk) ID() MethodID { return BasicGetOkID }

// Decode implements Method.
func (m *BasicGetOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.DeliveryTag = a.longLong()
	a.bits(&m.Redelivered)
	m.Exchange = a.shortView()
	m.RoutingKey = a.shortView()
	m.MessageCount = a.long()
	return a.end(BasicGetOkID)
}

// Append implements Method.
func (m *BasicGetOk) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, packBits(m.Redelivered))
	dst = amqp.AppendShortStr(dst, m.Exchange)
	dst = amqp.AppendShortStr(dst, m.RoutingKey)
	return binary.BigEndian.AppendUint32(dst, m.MessageCount)
}

// ContentHeader is the payload of a header frame.
type ContentHeader struct {
	Class    uint16
	BodySize uint64
	// Properties is what amqp.Properties decodes: a view, not checked here.
	Properties []byte
}

// headerPrefix is the size of class, weight and body size. [amqp 4.2.6.1]
const headerPrefix = 2 + 2 + 8

// Decode reads a header frame's payload.
func (h *ContentHeader) Decode(payload []byte) error {
	if len(payload) < headerPrefix {
		return amqp.Errorf(amqp.FrameError, "header frame of %d octets, at least %d are needed",
			len(payload), headerPrefix)
	}
	if weight := binary.BigEndian.Uint16(payload[2:]); weight != 0 {
		return amqp.Errorf(amqp.UnexpectedFrame, "content header has weight %d instead of 0", weight)
	}
	h.Class = binary.BigEndian.Uint16(payload)
	h.BodySize = binary.BigEndian.Uint64(payload[4:])
	h.Properties = payload[headerPrefix:]
	return nil
}
