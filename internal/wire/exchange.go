package wire

import "github.com/duepost/duepost/internal/amqp"

// ExchangeDeclare creates an exchange or checks it.
type ExchangeDeclare struct {
	Exchange   string
	Type       string
	Passive    bool
	Durable    bool
	AutoDelete bool
	Internal   bool
	NoWait     bool
	Arguments  amqp.RawTable
}

// ID implements Method.
func (*ExchangeDeclare) ID() MethodID { return ExchangeDeclareID }

// Decode implements Method.
func (m *ExchangeDeclare) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Exchange = a.shortStr()
	m.Type = a.shortStr()
	a.bits(&m.Passive, &m.Durable, &m.AutoDelete, &m.Internal, &m.NoWait)
	m.Arguments = a.table()
	return a.end(ExchangeDeclareID)
}

// Append implements Method.
func (m *ExchangeDeclare) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Exchange)
	dst = amqp.AppendShortStr(dst, m.Type)
	dst = append(dst, packBits(m.Passive, m.Durable, m.AutoDelete, m.Internal, m.NoWait))
	return amqp.AppendLongStr(dst, m.Arguments)
}

// ExchangeDeclareOk confirms an exchange.
type ExchangeDeclareOk struct{}

// ID implements Method.
func (*ExchangeDeclareOk) ID() MethodID { return ExchangeDeclareOkID }

// Decode implements Method.
func (m *ExchangeDeclareOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ExchangeDeclareOk) Append(dst []byte) []byte { return dst }

// ExchangeDelete deletes an exchange.
type ExchangeDelete struct {
	Exchange string
	IfUnused bool
	NoWait   bool
}

// ID implements Method.
func (*ExchangeDelete) ID() MethodID { return ExchangeDeleteID }

// Decode implements Method.
func (m *ExchangeDelete) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Exchange = a.shortStr()
	a.bits(&m.IfUnused, &m.NoWait)
	return a.end(ExchangeDeleteID)
}

// Append implements Method.
func (m *ExchangeDelete) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Exchange)
	return append(dst, packBits(m.IfUnused, m.NoWait))
}

// ExchangeDeleteOk confirms a deletion.
type ExchangeDeleteOk struct{}

// ID implements Method.
func (*ExchangeDeleteOk) ID() MethodID { return ExchangeDeleteOkID }

// Decode implements Method.
func (m *ExchangeDeleteOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ExchangeDeleteOk) Append(dst []byte) []byte { return dst }

// ExchangeBind binds an exchange to an exchange. [rmq e2e]
type ExchangeBind struct {
	Destination string
	Source      string
	RoutingKey  string
	NoWait      bool
	Arguments   amqp.RawTable
}

// ID implements Method.
func (*ExchangeBind) ID() MethodID { return ExchangeBindID }

// Decode implements Method.
func (m *ExchangeBind) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Destination = a.shortStr()
	m.Source = a.shortStr()
	m.RoutingKey = a.shortStr()
	a.bits(&m.NoWait)
	m.Arguments = a.table()
	return a.end(ExchangeBindID)
}

// Append implements Method.
func (m *ExchangeBind) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Destination)
	dst = amqp.AppendShortStr(dst, m.Source)
	dst = amqp.AppendShortStr(dst, m.RoutingKey)
	dst = append(dst, packBits(m.NoWait))
	return amqp.AppendLongStr(dst, m.Arguments)
}

// ExchangeBindOk confirms a binding.
type ExchangeBindOk struct{}

// ID implements Method.
func (*ExchangeBindOk) ID() MethodID { return ExchangeBindOkID }

// Decode implements Method.
func (m *ExchangeBindOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ExchangeBindOk) Append(dst []byte) []byte { return dst }

// ExchangeUnbind removes a binding. [rmq e2e]
type ExchangeUnbind struct {
	Destination string
	Source      string
	RoutingKey  string
	NoWait      bool
	Arguments   amqp.RawTable
}

// ID implements Method.
func (*ExchangeUnbind) ID() MethodID { return ExchangeUnbindID }

// Decode implements Method.
func (m *ExchangeUnbind) Decode(src []byte) error {
	a := arguments{rest: src}
	a.short() // reserved
	m.Destination = a.shortStr()
	m.Source = a.shortStr()
	m.RoutingKey = a.shortStr()
	a.bits(&m.NoWait)
	m.Arguments = a.table()
	return a.end(ExchangeUnbindID)
}

// Append implements Method.
func (m *ExchangeUnbind) Append(dst []byte) []byte {
	dst = append(dst, 0, 0) // reserved
	dst = amqp.AppendShortStr(dst, m.Destination)
	dst = amqp.AppendShortStr(dst, m.Source)
	dst = amqp.AppendShortStr(dst, m.RoutingKey)
	dst = append(dst, packBits(m.NoWait))
	return amqp.AppendLongStr(dst, m.Arguments)
}

// ExchangeUnbindOk confirms a removed binding. Its id is 51, not 41.
type ExchangeUnbindOk struct{}

// ID implements Method.
func (*ExchangeUnbindOk) ID() MethodID { return ExchangeUnbindOkID }

// Decode implements Method.
func (m *ExchangeUnbindOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ExchangeUnbindOk) Append(dst []byte) []byte { return dst }
