package wire

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
)

// ChannelOpen opens a channel.
type ChannelOpen struct{}

// ID implements Method.
func (*ChannelOpen) ID() MethodID { return ChannelOpenID }

// Decode implements Method.
func (m *ChannelOpen) Decode(src []byte) error {
	a := arguments{rest: src}
	a.skipShortStr() // reserved
	return a.end(ChannelOpenID)
}

// Append implements Method.
func (*ChannelOpen) Append(dst []byte) []byte {
	return append(dst, 0) // reserved
}

// ChannelOpenOk confirms an open channel.
type ChannelOpenOk struct{}

// ID implements Method.
func (*ChannelOpenOk) ID() MethodID { return ChannelOpenOkID }

// Decode implements Method.
func (m *ChannelOpenOk) Decode(src []byte) error {
	a := arguments{rest: src}
	a.skipLongStr() // reserved
	return a.end(ChannelOpenOkID)
}

// Append implements Method.
func (*ChannelOpenOk) Append(dst []byte) []byte {
	return append(dst, 0, 0, 0, 0) // reserved
}

// ChannelFlow stops or resumes the peer's messages.
type ChannelFlow struct {
	Active bool
}

// ID implements Method.
func (*ChannelFlow) ID() MethodID { return ChannelFlowID }

// Decode implements Method.
func (m *ChannelFlow) Decode(src []byte) error {
	a := arguments{rest: src}
	a.bits(&m.Active)
	return a.end(ChannelFlowID)
}

// Append implements Method.
func (m *ChannelFlow) Append(dst []byte) []byte {
	return append(dst, packBits(m.Active))
}

// ChannelFlowOk repeats what flow asked for.
type ChannelFlowOk struct {
	Active bool
}

// ID implements Method.
func (*ChannelFlowOk) ID() MethodID { return ChannelFlowOkID }

// Decode implements Method.
func (m *ChannelFlowOk) Decode(src []byte) error {
	a := arguments{rest: src}
	a.bits(&m.Active)
	return a.end(ChannelFlowOkID)
}

// Append implements Method.
func (m *ChannelFlowOk) Append(dst []byte) []byte {
	return append(dst, packBits(m.Active))
}

// ChannelClose ends the channel and says why.
type ChannelClose struct {
	ReplyCode uint16
	ReplyText string
	ClassID   uint16
	MethodID  uint16
}

// ID implements Method.
func (*ChannelClose) ID() MethodID { return ChannelCloseID }

// Decode implements Method.
func (m *ChannelClose) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ReplyCode = a.short()
	m.ReplyText = a.shortStr()
	m.ClassID = a.short()
	m.MethodID = a.short()
	return a.end(ChannelCloseID)
}

// Append implements Method.
func (m *ChannelClose) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, m.ReplyCode)
	dst = amqp.AppendShortStr(dst, m.ReplyText)
	dst = binary.BigEndian.AppendUint16(dst, m.ClassID)
	return binary.BigEndian.AppendUint16(dst, m.MethodID)
}

// ChannelCloseOk is the last method on a channel.
type ChannelCloseOk struct{}

// ID implements Method.
func (*ChannelCloseOk) ID() MethodID { return ChannelCloseOkID }

// Decode implements Method.
func (m *ChannelCloseOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ChannelCloseOk) Append(dst []byte) []byte { return dst }

// AccessRequest asks for a ticket, an idea of AMQP 0-8. Old clients
// send it; RabbitMQ answers ticket 1 and never looks at tickets. [rmq access]
type AccessRequest struct {
	Realm     string
	Exclusive bool
	Passive   bool
	Active    bool
	Write     bool
	Read      bool
}

// ID implements Method.
func (*AccessRequest) ID() MethodID { return AccessRequestID }

// Decode implements Method.
func (m *AccessRequest) Decode(src []byte) error {
	a := arguments{rest: src}
	m.Realm = a.shortStr()
	a.bits(&m.Exclusive, &m.Passive, &m.Active, &m.Write, &m.Read)
	return a.end(AccessRequestID)
}

// Append implements Method.
func (m *AccessRequest) Append(dst []byte) []byte {
	dst = amqp.AppendShortStr(dst, m.Realm)
	return append(dst, packBits(m.Exclusive, m.Passive, m.Active, m.Write, m.Read))
}

// AccessRequestOk hands out the ticket.
type AccessRequestOk struct {
	Ticket uint16
}

// ID implements Method.
func (*AccessRequestOk) ID() MethodID { return AccessRequestOkID }

// Decode implements Method.
func (m *AccessRequestOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.Ticket = a.short()
	return a.end(AccessRequestOkID)
}

// Append implements Method.
func (m *AccessRequestOk) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint16(dst, m.Ticket)
}
