package wire

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
)

// BasicQos limits unacknowledged deliveries.
type BasicQos struct {
	PrefetchSize  uint32 // octets
	PrefetchCount uint16
	Global        bool
}

// ID implements Method.
func (*BasicQos) ID() MethodID { return BasicQosID }

// Decode implements Method.
func (m *BasicQos) Decode(src []byte) error {
	a := arguments{rest: src}
	m.PrefetchSize = a.long()
	m.PrefetchCount = a.short()
	a.bits(&m.Global)
	return a.end(BasicQosID)
}

// Append implements Method.
func (m *BasicQos) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, m.PrefetchSize)
	dst = binary.BigEndian.AppendUint16(dst, m.PrefetchCount)
	return append(dst, packBits(m.Global))
}

// BasicQosOk confirms a limit.
type BasicQosOk struct{}

// ID implements Method.
func (*BasicQosOk) ID() MethodID { return BasicQosOkID }

// Decode implements Method.
func (m *BasicQosOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*BasicQosOk) Append(dst []byte) []byte { return dst }

// BasicConsume starts a consumer.
type BasicConsume struct {
	Queue       string
	ConsumerTag string
	NoLocal     bool
	NoAck       bool
	Exclusive   bool
	NoWait      bool
	Arguments   amqp.RawTable
}

// ID implements Method.
func (*BasicConsume) ID() MethodID { return BasicConsumeID }

// Decode implements Method.
func (m *BasicConsume) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	m.ConsumerTag = a.shortStr()
	a.bits(&m.NoLocal, &m.NoAck, &m.Exclusive, &m.NoWait)
	m.Arguments = a.table()
	return a.end(BasicConsumeID)
}

// Append implements Method.
func (m *BasicConsume) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	dst = amqp.AppendShortStr(dst, m.ConsumerTag)
	dst = append(dst, packBits(m.NoLocal, m.NoAck, m.Exclusive, m.NoWait))
	return amqp.AppendLongStr(dst, m.Arguments)
}

// BasicConsumeOk confirms a consumer and tells its tag.
type BasicConsumeOk struct {
	ConsumerTag string
}

// ID implements Method.
func (*BasicConsumeOk) ID() MethodID { return BasicConsumeOkID }

// Decode implements Method.
func (m *BasicConsumeOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ConsumerTag = a.shortStr()
	return a.end(BasicConsumeOkID)
}

// Append implements Method.
func (m *BasicConsumeOk) Append(dst []byte) []byte {
	return amqp.AppendShortStr(dst, m.ConsumerTag)
}

// BasicCancel ends a consumer; the server sends it when a queue is gone.
type BasicCancel struct {
	ConsumerTag string
	NoWait      bool
}

// ID implements Method.
func (*BasicCancel) ID() MethodID { return BasicCancelID }

// Decode implements Method.
func (m *BasicCancel) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ConsumerTag = a.shortStr()
	a.bits(&m.NoWait)
	return a.end(BasicCancelID)
}

// Append implements Method.
func (m *BasicCancel) Append(dst []byte) []byte {
	dst = amqp.AppendShortStr(dst, m.ConsumerTag)
	return append(dst, packBits(m.NoWait))
}

// BasicCancelOk confirms the end of a consumer.
type BasicCancelOk struct {
	ConsumerTag string
}

// ID implements Method.
func (*BasicCancelOk) ID() MethodID { return BasicCancelOkID }

// Decode implements Method.
func (m *BasicCancelOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ConsumerTag = a.shortStr()
	return a.end(BasicCancelOkID)
}

// Append implements Method.
func (m *BasicCancelOk) Append(dst []byte) []byte {
	return amqp.AppendShortStr(dst, m.ConsumerTag)
}

// BasicGet asks for one message.
type BasicGet struct {
	Queue string
	NoAck bool
}

// ID implements Method.
func (*BasicGet) ID() MethodID { return BasicGetID }

// Decode implements Method.
func (m *BasicGet) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	a.bits(&m.NoAck)
	return a.end(BasicGetID)
}

// Append implements Method.
func (m *BasicGet) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	return append(dst, packBits(m.NoAck))
}

// BasicGetEmpty says that there was no message to get.
type BasicGetEmpty struct{}

// ID implements Method.
func (*BasicGetEmpty) ID() MethodID { return BasicGetEmptyID }

// Decode implements Method.
func (m *BasicGetEmpty) Decode(src []byte) error {
	a := arguments{rest: src}
	a.skipShortStr() // reserved
	return a.end(BasicGetEmptyID)
}

// Append implements Method.
func (*BasicGetEmpty) Append(dst []byte) []byte {
	return append(dst, 0) // reserved
}

// BasicAck settles deliveries, or confirms publishes. [rmq confirms]
type BasicAck struct {
	DeliveryTag uint64
	Multiple    bool
}

// ID implements Method.
func (*BasicAck) ID() MethodID { return BasicAckID }

// Decode implements Method.
func (m *BasicAck) Decode(src []byte) error {
	a := arguments{rest: src}
	m.DeliveryTag = a.longLong()
	a.bits(&m.Multiple)
	return a.end(BasicAckID)
}

// Append implements Method.
func (m *BasicAck) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	return append(dst, packBits(m.Multiple))
}

// BasicReject refuses a delivery.
type BasicReject struct {
	DeliveryTag uint64
	Requeue     bool
}

// ID implements Method.
func (*BasicReject) ID() MethodID { return BasicRejectID }

// Decode implements Method.
func (m *BasicReject) Decode(src []byte) error {
	a := arguments{rest: src}
	m.DeliveryTag = a.longLong()
	a.bits(&m.Requeue)
	return a.end(BasicRejectID)
}

// Append implements Method.
func (m *BasicReject) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	return append(dst, packBits(m.Requeue))
}

// BasicRecoverAsync is recover without an answer.
type BasicRecoverAsync struct {
	Requeue bool
}

// ID implements Method.
func (*BasicRecoverAsync) ID() MethodID { return BasicRecoverAsyncID }

// Decode implements Method.
func (m *BasicRecoverAsync) Decode(src []byte) error {
	a := arguments{rest: src}
	a.bits(&m.Requeue)
	return a.end(BasicRecoverAsyncID)
}

// Append implements Method.
func (m *BasicRecoverAsync) Append(dst []byte) []byte {
	return append(dst, packBits(m.Requeue))
}

// BasicRecover puts back what is unacknowledged.
type BasicRecover struct {
	Requeue bool
}

// ID implements Method.
func (*BasicRecover) ID() MethodID { return BasicRecoverID }

// Decode implements Method.
func (m *BasicRecover) Decode(src []byte) error {
	a := arguments{rest: src}
	a.bits(&m.Requeue)
	return a.end(BasicRecoverID)
}

// Append implements Method.
func (m *BasicRecover) Append(dst []byte) []byte {
	return append(dst, packBits(m.Requeue))
}

// BasicRecoverOk confirms recovery.
type BasicRecoverOk struct{}

// ID implements Method.
func (*BasicRecoverOk) ID() MethodID { return BasicRecoverOkID }

// Decode implements Method.
func (m *BasicRecoverOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*BasicRecoverOk) Append(dst []byte) []byte { return dst }

// BasicNack refuses deliveries, or denies publishes. [rmq nack]
type BasicNack struct {
	DeliveryTag uint64
	Multiple    bool
	Requeue     bool
}

// ID implements Method.
func (*BasicNack) ID() MethodID { return BasicNackID }

// Decode implements Method.
func (m *BasicNack) Decode(src []byte) error {
	a := arguments{rest: src}
	m.DeliveryTag = a.longLong()
	a.bits(&m.Multiple, &m.Requeue)
	return a.end(BasicNackID)
}

// Append implements Method.
func (m *BasicNack) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	return append(dst, packBits(m.Multiple, m.Requeue))
}
