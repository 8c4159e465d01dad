package gateway

import (
	"bytes"
	"encoding/binary"
	"time"

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
	// marked has the channels whose next frame is the content header of a publish to an exchange
	// that is delayed, or may be.
	marked map[uint16]*exchange
	holds  map[uint16]*hold
	// answered is what a hold that ends has asked about: it is not asked about again.
	answered *exchange
	content  content
	instead  []byte // what replace returned last
}

func newUpward(l *link) *upward {
	return &upward{l: l, near: map[string]*exchange{}, marked: map[uint16]*exchange{}, holds: map[uint16]*hold{}}
}

// look implements sieve.
func (u *upward) look(h head, id wire.MethodID) interest {
	if len(u.holds) > 0 {
		if held := u.holds[h.channel]; held != nil {
			if int64(len(held.frames))+h.total() > holdLimit {
				return blocked
			}
			return whole
		}
	}
	if h.kind == wire.FrameHeader {
		if len(u.marked) > 0 && u.marked[h.channel] != nil {
			return whole
		}
		return untouched
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
	if len(u.holds) > 0 {
		if held := u.holds[h.channel]; held != nil {
			held.frames = append(held.frames, frame...)
			return nil, false
		}
	}
	if h.kind == wire.FrameHeader {
		return u.header(h, frame)
	}
	args := arguments(frame)
	switch id {
	case wire.BasicPublishID:
		u.publish(h, args)
	case wire.ConnectionTuneOkID:
		if len(args) >= 6 {
			u.frameMax = binary.BigEndian.Uint32(args[2:]) // behind channel-max
		}
	case wire.ConnectionOpenID:
		if vhost, _, ok := amqp.CutShortStr(args); ok {
			u.vhost = string(vhost)
			u.l.opened.Store(true)
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

// publish notes whether the content header that follows on the channel is of a message that may
// have to be marked. [amqp basic.publish]
func (u *upward) publish(h head, args []byte) {
	if len(args) < 2 {
		return
	}
	name, _, ok := amqp.CutShortStr(args[2:]) // behind the reserved short
	if !ok || !mayBeDelayed(name) {
		u.unmark(h.channel)
		return
	}
	x := u.find(name)
	if x.isStale(time.Now()) {
		u.l.gw.exchanges.ask(x)
	}
	if x.state.Load() == plain {
		u.unmark(h.channel)
		return
	}
	u.marked[h.channel] = x
}

func (u *upward) unmark(channel uint16) {
	if len(u.marked) > 0 {
		delete(u.marked, channel)
	}
}

// mayBeDelayed reports whether an exchange of that name can be delayed: the broker's own are not.
func mayBeDelayed(name []byte) bool {
	return len(name) > 0 && !bytes.HasPrefix(name, []byte("amq.")) && !bytes.HasSuffix(name, []byte(dueSuffix))
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

// header deals with the content header of a publish that was marked.
func (u *upward) header(h head, frame []byte) (instead []byte, passes bool) {
	x := u.marked[h.channel]
	if x == nil || !u.content.asksForDelay(frame) {
		u.unmark(h.channel)
		return nil, true
	}
	switch state := x.state.Load(); {
	case state == unsure && u.answered != x:
		u.holdFor(x, h.channel, frame) // with its mark
		return nil, false
	case state == unsure:
		// Nobody could tell. The relay takes the time of its intake for the time of acceptance.
		u.l.gw.stats.unmarked.Add(1)
	case state == delayed:
		u.unmark(h.channel)
		return u.content.mark(h, frame, u.frameMax, &u.l.gw.stats)
	}
	u.unmark(h.channel)
	return nil, true
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
