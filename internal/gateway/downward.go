package gateway

import (
	"bytes"
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// downward is the sieve of what the broker says. In deliveries, returned messages and answers to
// basic.get it puts the name that the client knows in place of the exchange with the bindings, and
// it watches for the replies that errands wait for.
type downward struct {
	l       *link
	instead []byte // what replace returned last
}

// look implements sieve.
func (d *downward) look(_ head, id wire.MethodID) interest {
	switch id {
	case wire.BasicDeliverID, wire.BasicReturnID, wire.BasicGetOkID:
		return whole
	case wire.ExchangeDeclareOkID, wire.ExchangeDeleteOkID, wire.ChannelCloseID:
		if d.l.errandCount.Load() > 0 {
			return whole
		}
	}
	return untouched
}

// resume implements sieve: nothing is held in this direction.
func (d *downward) resume(uint16) []byte { return nil }

// replace implements sieve.
func (d *downward) replace(h head, id wire.MethodID, frame []byte) (instead []byte, passes bool) {
	switch id {
	case wire.BasicDeliverID:
		_, rest, ok := amqp.CutShortStr(arguments(frame)) // consumer tag
		return d.rename(frame, rest, 8+1, ok)             // delivery tag, redelivered
	case wire.BasicGetOkID:
		return d.rename(frame, arguments(frame), 8+1, true)
	case wire.BasicReturnID:
		args := arguments(frame)
		if len(args) < 2 {
			return nil, true
		}
		_, rest, ok := amqp.CutShortStr(args[2:]) // code, text
		return d.rename(frame, rest, 0, ok)
	case wire.ChannelCloseID:
		reason := d.l.closed(h.channel)
		if reason == nil {
			return nil, true
		}
		d.instead = wire.AppendMethod(d.instead[:0], h.channel, &wire.ChannelClose{
			ReplyCode: reason.Code, ReplyText: reason.ReplyText(),
			ClassID: reason.Class, MethodID: reason.Method,
		})
		return d.instead, false
	}
	return nil, d.l.replied(h.channel, id)
}

// rename takes the suffix off the exchange name in a frame, if it has one. The name stands skip
// octets behind the beginning of rest, which ends where the frame's arguments end.
func (d *downward) rename(frame, rest []byte, skip int, ok bool) (instead []byte, passes bool) {
	if !ok || len(rest) < skip {
		return nil, true
	}
	name, after, ok := amqp.CutShortStr(rest[skip:])
	if !ok || len(name) <= len(dueSuffix) || !bytes.HasSuffix(name, []byte(dueSuffix)) {
		return nil, true
	}
	name = name[:len(name)-len(dueSuffix)]
	before := len(frame) - 1 - len(rest) + skip
	b := append(d.instead[:0], frame[:before]...)
	b = amqp.AppendShortStr(b, name)
	b = append(b, after...)
	b = append(b, wire.FrameEnd)
	binary.BigEndian.PutUint32(b[3:], uint32(len(b)-wire.FrameOverhead))
	d.instead = b
	d.l.gw.stats.restored.Add(1)
	return b, false
}
