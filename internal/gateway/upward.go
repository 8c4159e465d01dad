package gateway

import (
	"bytes"
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

const (
	// holdLimit is how much is kept of what a client says on a held channel. Beyond it nothing
	// more is read from the client.
	holdLimit = 64 << 10
	// mostNear bounds how many exchanges a link remembers by itself.
	mostNear = 1024
)

// hold is what a client has said on a channel that waits.
type hold struct {
	frames []byte // whole frames
	// asked is what the topology was asked about, nil if the hold is for an errand.
	asked *exchange
}

// upward is the sieve of what the client says.
//
// Only the pump's goroutine uses it, except for what it calls on the link.
type upward struct {
	l        *link
	vhost    string // as the client opened it; empty before
	frameMax uint32 // as the client has tuned it; 0 for no limit
	// near is what exchanges of this vhost this client has named, so that a publish needs no lock.
	near map[string]*exchange
	// kept has the channels whose publish waits for its content header, the next frame.
	kept  map[uint16]*publication
	spare *publication // for the next
	// dropped is how much is still to come of the bodies of refused messages, which the broker
	// would not expect.
	dropped map[uint16]uint64
	holds   map[uint16]*hold
	// answered is what a hold that ends has asked about: it is not asked about again.
	answered *exchange
	content  content
	// What replace returned last, and a part of it.
	instead, redirection []byte
}

func newUpward(l *link) *upward {
	return &upward{l: l, near: map[string]*exchange{}, kept: map[uint16]*publication{}, dropped: map[uint16]uint64{}, holds: map[uint16]*hold{}}
}

// look implements sieve.
func (u *upward) look(h head, id wire.MethodID) interest {
	if h.kind == wire.FrameBody && len(u.dropped) > 0 && u.dropped[h.channel] > 0 {
		return whole
	}
	if len(u.holds) > 0 {
		if held := u.holds[h.channel]; held != nil {
			if int64(len(held.frames))+h.total() > holdLimit {
				return blocked
			}
			return whole
		}
	}
	if len(u.kept) > 0 {
		if p := u.kept[h.channel]; p != nil {
			if h.total() > mostSeen {
				u.release(h.channel, p)
				return blocked
			}
			return whole
		}
	}
	switch id {
	case wire.BasicPublishID,
		wire.ExchangeDeclareID, wire.ExchangeDeleteID, wire.ExchangeBindID, wire.ExchangeUnbindID,
		wire.QueueBindID, wire.QueueUnbindID,
		wire.ConnectionStartOkID, wire.ConnectionTuneOkID, wire.ConnectionOpenID:
		return whole
	case wire.ConnectionCloseOkID:
		if u.l.leaving.Load() {
			return whole
		}
	}
	return untouched
}

// replace implements sieve.
func (u *upward) replace(h head, id wire.MethodID, frame []byte) (instead []byte, passes bool) {
	if h.kind == wire.FrameBody && len(u.dropped) > 0 && u.dropped[h.channel] > 0 {
		u.drop(h)
		return nil, false
	}
	if len(u.holds) > 0 {
		if held := u.holds[h.channel]; held != nil {
			held.frames = append(held.frames, frame...)
			return nil, false
		}
	}
	if len(u.kept) > 0 {
		if p := u.kept[h.channel]; p != nil {
			return u.header(h, p, frame)
		}
	}
	args := arguments(frame)
	switch id {
	case wire.BasicPublishID:
		return u.publish(h, frame)
	case wire.ConnectionTuneOkID:
		if len(args) >= 6 {
			u.frameMax = binary.BigEndian.Uint32(args[2:]) // behind channel-max
		}
	case wire.ConnectionOpenID:
		if vhost, _, ok := amqp.CutShortStr(args); ok {
			u.vhost = string(vhost)
			if !u.l.opened.Load() { // a second one is a fault, of which the broker will say so
				u.l.vhost = u.vhost
				u.l.opened.Store(true)
			}
		}
	case wire.ConnectionStartOkID:
		return u.logIn(h, frame)
	case wire.ConnectionCloseOkID: // of a client that was told to leave
		return u.say(h, &wire.ConnectionClose{ReplyCode: amqp.ReplySuccess, ReplyText: "the gateway shuts down"})
	default:
		return u.topology(h, id, frame)
	}
	return nil, true
}

// logIn keeps a client from being taken for the gateway, whose certificate is the only one that
// the broker sees: EXTERNAL becomes a word that the broker does not know.
func (u *upward) logIn(h head, frame []byte) (instead []byte, passes bool) {
	var m wire.ConnectionStartOk
	if m.Decode(arguments(frame)) != nil || m.Mechanism != external {
		return nil, true
	}
	m.Mechanism = external + " THROUGH A GATEWAY"
	return u.say(h, &m)
}

// resume implements sieve: it ends a hold and deals with what was kept, of which the first frame
// may begin another hold that keeps the rest.
func (u *upward) resume(channel uint16) []byte {
	held := u.holds[channel]
	if held == nil {
		return nil
	}
	delete(u.holds, channel)
	u.answered = held.asked
	defer func() { u.answered = nil }()
	var passing []byte
	for rest := held.frames; len(rest) > 0; {
		h := cutHead(rest)
		frame := rest[:h.total()]
		rest = rest[len(frame):]
		id := wire.MethodID(0)
		if h.kind == wire.FrameMethod && h.size >= idSize {
			id = wire.MethodID(binary.BigEndian.Uint32(frame[headSize:]))
		}
		instead, passes := []byte(nil), true
		if u.look(h, id) != untouched {
			instead, passes = u.replace(h, id, frame)
		}
		if passes {
			instead = frame
		}
		passing = append(passing, instead...)
	}
	return passing
}

// find returns what is known of an exchange, without a lock if this client has named it before.
func (u *upward) find(name []byte) *exchange {
	if x := u.near[string(name)]; x != nil && !x.forgotten.Load() {
		return x
	}
	if len(u.near) >= mostNear {
		clear(u.near)
	}
	x := u.l.gw.exchanges.find(u.vhost, string(name))
	u.near[x.key.name] = x
	return x
}

// holdFor holds a channel, beginning with a frame, until the topology has said what x is.
func (u *upward) holdFor(x *exchange, channel uint16, frame []byte) {
	u.holds[channel] = &hold{frames: bytes.Clone(frame), asked: x}
	answered := u.l.gw.exchanges.ask(x)
	u.l.gw.work.Go(func() {
		select {
		case <-answered:
			u.l.resume(channel)
		case <-u.l.ctx.Done():
		}
	})
}
