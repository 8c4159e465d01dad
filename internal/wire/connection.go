package wire

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
)

// ConnectionStart opens the negotiation; the server sends it first.
type ConnectionStart struct {
	VersionMajor     uint8
	VersionMinor     uint8
	ServerProperties amqp.RawTable
	Mechanisms       string // names between spaces
	Locales          string
}

// ID implements Method.
func (*ConnectionStart) ID() MethodID { return ConnectionStartID }

// Decode implements Method.
func (m *ConnectionStart) Decode(src []byte) error {
	a := arguments{rest: src}
	m.VersionMajor = a.octet()
	m.VersionMinor = a.octet()
	m.ServerProperties = a.table()
	m.Mechanisms = a.longStr()
	m.Locales = a.longStr()
	return a.end(ConnectionStartID)
}

// Append implements Method.
func (m *ConnectionStart) Append(dst []byte) []byte {
	dst = append(dst, m.VersionMajor)
	dst = append(dst, m.VersionMinor)
	dst = amqp.AppendLongStr(dst, m.ServerProperties)
	dst = amqp.AppendLongStr(dst, m.Mechanisms)
	return amqp.AppendLongStr(dst, m.Locales)
}

// ConnectionStartOk chooses a mechanism and carries its first response.
type ConnectionStartOk struct {
	ClientProperties amqp.RawTable
	Mechanism        string
	Response         string
	Locale           string
}

// ID implements Method.
func (*ConnectionStartOk) ID() MethodID { return ConnectionStartOkID }

// Decode implements Method.
func (m *ConnectionStartOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ClientProperties = a.table()
	m.Mechanism = a.shortStr()
	m.Response = a.longStr()
	m.Locale = a.shortStr()
	return a.end(ConnectionStartOkID)
}

// Append implements Method.
func (m *ConnectionStartOk) Append(dst []byte) []byte {
	dst = amqp.AppendLongStr(dst, m.ClientProperties)
	dst = amqp.AppendShortStr(dst, m.Mechanism)
	dst = amqp.AppendLongStr(dst, m.Response)
	return amqp.AppendShortStr(dst, m.Locale)
}

// ConnectionSecure asks the client for one more step of authentication.
type ConnectionSecure struct {
	Challenge string
}

// ID implements Method.
func (*ConnectionSecure) ID() MethodID { return ConnectionSecureID }

// Decode implements Method.
func (m *ConnectionSecure) Decode(src []byte) error {
	a := arguments{rest: src}
	m.Challenge = a.longStr()
	return a.end(ConnectionSecureID)
}

// Append implements Method.
func (m *ConnectionSecure) Append(dst []byte) []byte {
	return amqp.AppendLongStr(dst, m.Challenge)
}

// ConnectionSecureOk answers a challenge.
type ConnectionSecureOk struct {
	Response string
}

// ID implements Method.
func (*ConnectionSecureOk) ID() MethodID { return ConnectionSecureOkID }

// Decode implements Method.
func (m *ConnectionSecureOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.Response = a.longStr()
	return a.end(ConnectionSecureOkID)
}

// Append implements Method.
func (m *ConnectionSecureOk) Append(dst []byte) []byte {
	return amqp.AppendLongStr(dst, m.Response)
}

// ConnectionTune proposes limits; 0 means no limit, or no heartbeat.
type ConnectionTune struct {
	ChannelMax uint16
	FrameMax   uint32 // octets
	Heartbeat  uint16 // seconds
}

// ID implements Method.
func (*ConnectionTune) ID() MethodID { return ConnectionTuneID }

// Decode implements Method.
func (m *ConnectionTune) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ChannelMax = a.short()
	m.FrameMax = a.long()
	m.Heartbeat = a.short()
	return a.end(ConnectionTuneID)
}

// Append implements Method.
func (m *ConnectionTune) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, m.ChannelMax)
	dst = binary.BigEndian.AppendUint32(dst, m.FrameMax)
	return binary.BigEndian.AppendUint16(dst, m.Heartbeat)
}

// ConnectionTuneOk fixes the limits for both sides.
type ConnectionTuneOk struct {
	ChannelMax uint16
	FrameMax   uint32 // octets
	Heartbeat  uint16 // seconds
}

// ID implements Method.
func (*ConnectionTuneOk) ID() MethodID { return ConnectionTuneOkID }

// Decode implements Method.
func (m *ConnectionTuneOk) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ChannelMax = a.short()
	m.FrameMax = a.long()
	m.Heartbeat = a.short()
	return a.end(ConnectionTuneOkID)
}

// Append implements Method.
func (m *ConnectionTuneOk) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, m.ChannelMax)
	dst = binary.BigEndian.AppendUint32(dst, m.FrameMax)
	return binary.BigEndian.AppendUint16(dst, m.Heartbeat)
}

// ConnectionOpen enters a virtual host.
type ConnectionOpen struct {
	VirtualHost string
}

// ID implements Method.
func (*ConnectionOpen) ID() MethodID { return ConnectionOpenID }

// Decode implements Method.
func (m *ConnectionOpen) Decode(src []byte) error {
	a := arguments{rest: src}
	m.VirtualHost = a.shortStr()
	a.skipShortStr() // reserved
	a.octet()        // reserved
	return a.end(ConnectionOpenID)
}

// Append implements Method.
func (m *ConnectionOpen) Append(dst []byte) []byte {
	dst = amqp.AppendShortStr(dst, m.VirtualHost)
	dst = append(dst, 0)  // reserved
	return append(dst, 0) // reserved
}

// ConnectionOpenOk ends the negotiation.
type ConnectionOpenOk struct{}

// ID implements Method.
func (*ConnectionOpenOk) ID() MethodID { return ConnectionOpenOkID }

// Decode implements Method.
func (m *ConnectionOpenOk) Decode(src []byte) error {
	a := arguments{rest: src}
	a.skipShortStr() // reserved
	return a.end(ConnectionOpenOkID)
}

// Append implements Method.
func (*ConnectionOpenOk) Append(dst []byte) []byte {
	return append(dst, 0) // reserved
}

// ConnectionClose ends the connection and says why.
type ConnectionClose struct {
	ReplyCode uint16
	ReplyText string
	ClassID   uint16
	MethodID  uint16
}

// ID implements Method.
func (*ConnectionClose) ID() MethodID { return ConnectionCloseID }

// Decode implements Method.
func (m *ConnectionClose) Decode(src []byte) error {
	a := arguments{rest: src}
	m.ReplyCode = a.short()
	m.ReplyText = a.shortStr()
	m.ClassID = a.short()
	m.MethodID = a.short()
	return a.end(ConnectionCloseID)
}

// Append implements Method.
func (m *ConnectionClose) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, m.ReplyCode)
	dst = amqp.AppendShortStr(dst, m.ReplyText)
	dst = binary.BigEndian.AppendUint16(dst, m.ClassID)
	return binary.BigEndian.AppendUint16(dst, m.MethodID)
}

// ConnectionCloseOk is the last method on a connection.
type ConnectionCloseOk struct{}

// ID implements Method.
func (*ConnectionCloseOk) ID() MethodID { return ConnectionCloseOkID }

// Decode implements Method.
func (m *ConnectionCloseOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ConnectionCloseOk) Append(dst []byte) []byte { return dst }

// ConnectionBlocked tells a publisher that it is held back. [rmq connection-blocked]
type ConnectionBlocked struct {
	Reason string
}

// ID implements Method.
func (*ConnectionBlocked) ID() MethodID { return ConnectionBlockedID }

// Decode implements Method.
func (m *ConnectionBlocked) Decode(src []byte) error {
	a := arguments{rest: src}
	m.Reason = a.shortStr()
	return a.end(ConnectionBlockedID)
}

// Append implements Method.
func (m *ConnectionBlocked) Append(dst []byte) []byte {
	return amqp.AppendShortStr(dst, m.Reason)
}

// ConnectionUnblocked tells a publisher that it may go on. [rmq connection-blocked]
type ConnectionUnblocked struct{}

// ID implements Method.
func (*ConnectionUnblocked) ID() MethodID { return ConnectionUnblockedID }

// Decode implements Method.
func (m *ConnectionUnblocked) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ConnectionUnblocked) Append(dst []byte) []byte { return dst }

// ConnectionUpdateSecret renews a credential that expires. [rmq update-secret]
type ConnectionUpdateSecret struct {
	NewSecret string
	Reason    string
}

// ID implements Method.
func (*ConnectionUpdateSecret) ID() MethodID { return ConnectionUpdateSecretID }

// Decode implements Method.
func (m *ConnectionUpdateSecret) Decode(src []byte) error {
	a := arguments{rest: src}
	m.NewSecret = a.longStr()
	m.Reason = a.shortStr()
	return a.end(ConnectionUpdateSecretID)
}

// Append implements Method.
func (m *ConnectionUpdateSecret) Append(dst []byte) []byte {
	dst = amqp.AppendLongStr(dst, m.NewSecret)
	return amqp.AppendShortStr(dst, m.Reason)
}

// ConnectionUpdateSecretOk confirms the new credential.
type ConnectionUpdateSecretOk struct{}

// ID implements Method.
func (*ConnectionUpdateSecretOk) ID() MethodID { return ConnectionUpdateSecretOkID }

// Decode implements Method.
func (m *ConnectionUpdateSecretOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ConnectionUpdateSecretOk) Append(dst []byte) []byte { return dst }
