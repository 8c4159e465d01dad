package wire

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
)

// QueueDeclare creates a queue or checks it.
type QueueDeclare struct {
	Queue      string
	Passive    bool
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	NoWait     bool
	Arguments  amqp.RawTable
}

// ID implements Method.
func (*QueueDeclare) ID() MethodID { return QueueDeclareID }

// Decode implements Method.
func (m *QueueDeclare) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	a.bits(&m.Passive, &m.Durable, &m.Exclusive, &m.AutoDelete, &m.NoWait)
	m.Arguments = a.table()
	return a.end(QueueDeclareID)
}

// Append implements Method.
func (m *QueueDeclare) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	dst = append(dst, packBits(m.Passive, m.Durable, m.Exclusive, m.AutoDelete, m.NoWait))
	return amqp.AppendLongStr(dst, m.Arguments)
}

// QueueDeclareOk confirms a queue and tells its name and counts.
type QueueDeclareOk struct {
	Queue         string
	MessageCount  uint32
	ConsumerCount uint32
}

// ID implements Method.
func (*QueueDeclareOk) ID() MethodID { return QueueDeclareOkID }

// Decode implements Method.
func (m *QueueDeclareOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.Queue = a.shortStr()
	m.MessageCount = a.long()
	m.ConsumerCount = a.long()
	return a.end(QueueDeclareOkID)
}

// Append implements Method.
func (m *QueueDeclareOk) Append(dst []byte) []byte {
	dst = amqp.AppendShortStr(dst, m.Queue)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return binary.BigEndian.AppendUint32(dst, m.ConsumerCount)
}

// QueueBind binds a queue to an exchange.
type QueueBind struct {
	Queue      string
	Exchange   string
	RoutingKey string
	NoWait     bool
	Arguments  amqp.RawTable
}

// ID implements Method.
func (*QueueBind) ID() MethodID { return QueueBindID }

// Decode implements Method.
func (m *QueueBind) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	m.Exchange = a.shortStr()
	m.RoutingKey = a.shortStr()
	a.bits(&m.NoWait)
	m.Arguments = a.table()
	return a.end(QueueBindID)
}

// Append implements Method.
func (m *QueueBind) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	dst = amqp.AppendShortStr(dst, m.Exchange)
	dst = amqp.AppendShortStr(dst, m.RoutingKey)
	dst = append(dst, packBits(m.NoWait))
	return amqp.AppendLongStr(dst, m.Arguments)
}

// QueueBindOk confirms a binding.
type QueueBindOk struct{}

// ID implements Method.
func (*QueueBindOk) ID() MethodID { return QueueBindOkID }

// Decode implements Method.
func (m *QueueBindOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*QueueBindOk) Append(dst []byte) []byte { return dst }

// QueueUnbind removes a binding; it has no no-wait.
type QueueUnbind struct {
	Queue      string
	Exchange   string
	RoutingKey string
	Arguments  amqp.RawTable
}

// ID implements Method.
func (*QueueUnbind) ID() MethodID { return QueueUnbindID }

// Decode implements Method.
func (m *QueueUnbind) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	m.Exchange = a.shortStr()
	m.RoutingKey = a.shortStr()
	m.Arguments = a.table()
	return a.end(QueueUnbindID)
}

// Append implements Method.
func (m *QueueUnbind) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	dst = amqp.AppendShortStr(dst, m.Exchange)
	dst = amqp.AppendShortStr(dst, m.RoutingKey)
	return amqp.AppendLongStr(dst, m.Arguments)
}

// QueueUnbindOk confirms a removed binding.
type QueueUnbindOk struct{}

// ID implements Method.
func (*QueueUnbindOk) ID() MethodID { return QueueUnbindOkID }

// Decode implements Method.
func (m *QueueUnbindOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*QueueUnbindOk) Append(dst []byte) []byte { return dst }

// QueuePurge drops all ready messages of a queue.
type QueuePurge struct {
	Queue  string
	NoWait bool
}

// ID implements Method.
func (*QueuePurge) ID() MethodID { return QueuePurgeID }

// Decode implements Method.
func (m *QueuePurge) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	a.bits(&m.NoWait)
	return a.end(QueuePurgeID)
}

// Append implements Method.
func (m *QueuePurge) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	return append(dst, packBits(m.NoWait))
}

// QueuePurgeOk tells how many messages were dropped.
type QueuePurgeOk struct {
	MessageCount uint32
}

// ID implements Method.
func (*QueuePurgeOk) ID() MethodID { return QueuePurgeOkID }

// Decode implements Method.
func (m *QueuePurgeOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.MessageCount = a.long()
	return a.end(QueuePurgeOkID)
}

// Append implements Method.
func (m *QueuePurgeOk) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, m.MessageCount)
}

// QueueDelete deletes a queue.
type QueueDelete struct {
	Queue    string
	IfUnused bool
	IfEmpty  bool
	NoWait   bool
}

// ID implements Method.
func (*QueueDelete) ID() MethodID { return QueueDeleteID }

// Decode implements Method.
func (m *QueueDelete) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Queue = a.shortStr()
	a.bits(&m.IfUnused, &m.IfEmpty, &m.NoWait)
	return a.end(QueueDeleteID)
}

// Append implements Method.
func (m *QueueDelete) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Queue)
	return append(dst, packBits(m.IfUnused, m.IfEmpty, m.NoWait))
}

// QueueDeleteOk tells how many messages went with the queue.
type QueueDeleteOk struct {
	MessageCount uint32
}

// ID implements Method.
func (*QueueDeleteOk) ID() MethodID { return QueueDeleteOkID }

// Decode implements Method.
func (m *QueueDeleteOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.MessageCount = a.long()
	return a.end(QueueDeleteOkID)
}

// Append implements Method.
func (m *QueueDeleteOk) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, m.MessageCount)
}
