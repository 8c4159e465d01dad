package gateway

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// downward is the sieve of what the broker says. In deliveries, returned messages and answers to
// basic.get it puts the name that the client knows in place of the exchange with the bindings, and
// it watches for the replies that errands wait for.
type downward struct {
	l       *link
	near    map[string]*exchange // as upward.near
	instead []byte               // what replace returned last
	// returned has the channels whose next content header is of a returned message.
	returned map[uint16]bool
	past     past
}

func newDownward(l *link) *downward {
	return &downward{l: l, near: map[string]*exchange{}, returned: map[uint16]bool{}}
}

// look implements sieve.
func (d *downward) look(h head, id wire.MethodID) interest {
	if h.kind == wire.FrameHeader {
		return whole
	}
	switch id {
	case wire.BasicDeliverID, wire.BasicReturnID, wire.BasicGetOkID, wire.ConnectionStartID:
		return whole
	case wire.ExchangeDeclareOkID, wire.ExchangeDeleteOkID, wire.ChannelCloseID:
		if d.l.errandCount.Load() > 0 {
			return whole
		}
	case wire.ConnectionCloseOkID:
		if d.l.leaving.Load() {
			return whole
		}
	}
	return untouched
}

// resume implements sieve: nothing is held in this direction.
func (d *downward) resume(uint16) []byte { return nil }

// replace implements sieve.
func (d *downward) replace(h head, id wire.MethodID, frame []byte) (instead []byte, passes bool) {
	if h.kind == wire.FrameHeader {
		return d.header(h, frame)
	}
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
		d.returned[h.channel] = true
		_, rest, ok := amqp.CutShortStr(args[2:]) // code, text
		return d.rename(frame, rest, 0, ok)
	case wire.ChannelCloseID:
		return d.l.closed(h.channel, frame)
	case wire.ConnectionStartID:
		return d.start(h, frame)
	case wire.ConnectionCloseOkID:
		return nil, false // the client has had its goodbye from the gateway
	}
	return nil, d.l.replied(h.channel, id)
}

// header deals with the content header of a message for the client.
func (d *downward) header(h head, frame []byte) (instead []byte, passes bool) {
	returned := len(d.returned) > 0 && d.returned[h.channel]
	if returned {
		delete(d.returned, h.channel)
	}
	if !returned && !d.past.isIn(frame) {
		return nil, true
	}
	instead = d.past.restore(h, frame, returned, d.knownName)
	return instead, instead == nil
}

// external is the mechanism of those who have shown a certificate. [rmq ssl]
const external = "EXTERNAL"

// start takes EXTERNAL out of what the broker offers: TLS ends at the gateway.
func (d *downward) start(h head, frame []byte) (instead []byte, passes bool) {
	var m wire.ConnectionStart
	if m.Decode(arguments(frame)) != nil {
		return nil, true
	}
	all := strings.Fields(m.Mechanisms)
	left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == external })
	if len(left) == len(all) {
		return nil, true
	}
	m.Mechanisms = strings.Join(left, " ")
	d.instead = wire.AppendMethod(d.instead[:0], h.channel, &m)
	return d.instead, false
}

// rename takes the suffix off the exchange name in a frame, if it is that of a delayed exchange. The
// name stands skip octets behind the beginning of rest, which ends where the frame's arguments end.
func (d *downward) rename(frame, rest []byte, skip int, ok bool) (instead []byte, passes bool) {
	if !ok || len(rest) < skip {
		return nil, true
	}
	name, after, ok := amqp.CutShortStr(rest[skip:])
	if !ok {
		return nil, true
	}
	if name, ok = d.knownName(name); !ok {
		return nil, true
	}
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

// knownName returns the name by which clients know an exchange with the bindings of a delayed one.
// As long as nobody has said that it is none, such a name is taken for one.
func (d *downward) knownName(name []byte) (known []byte, ok bool) {
	if len(name) <= len(dueSuffix) || !bytes.HasSuffix(name, []byte(dueSuffix)) {
		return nil, false
	}
	name = name[:len(name)-len(dueSuffix)]
	if !d.l.opened.Load() {
		return name, true // and not a broker
	}
	x := d.near[string(name)]
	if x == nil || x.forgotten.Load() {
		if len(d.near) >= mostNear {
			clear(d.near)
		}
		x = d.l.gw.exchanges.find(d.l.vhost, string(name))
		d.near[x.key.name] = x
	}
	if x.isStale(time.Now()) {
		d.l.gw.exchanges.ask(x)
	}
	return name, x.state.Load() != plain
}
