package gateway

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// mostPublish is the largest basic.publish that is kept back: with both names as long as they may be
// it is smaller.
const mostPublish = 1 << 10

// publication is a publish to an exchange that is delayed, or may be. It is kept back until its
// content header says what it asks for: a fault in there must be found before the broker expects
// content, and what asks for no delay needs no relay.
type publication struct {
	x     *exchange
	frame []byte // of basic.publish
}

// publish keeps a publish back if its exchange is delayed, or may be. [amqp basic.publish]
func (u *upward) publish(h head, frame []byte) (instead []byte, passes bool) {
	args := arguments(frame)
	if len(args) < 2 || len(frame) > mostPublish {
		return nil, true
	}
	name, _, ok := amqp.CutShortStr(args[2:]) // behind the reserved short
	if !ok || !mayBeDelayed(name) {
		return nil, true
	}
	x := u.find(name)
	if x.isStale(time.Now()) {
		u.l.gw.exchanges.ask(x)
	}
	if x.state.Load() == plain {
		return nil, true
	}
	p := u.spare
	u.spare = nil
	if p == nil {
		p = new(publication)
	}
	p.x, p.frame = x, append(p.frame[:0], frame...)
	u.kept[h.channel] = p
	return nil, false
}

// mayBeDelayed reports whether an exchange of that name can be delayed: the broker's own are not.
func mayBeDelayed(name []byte) bool {
	return len(name) > 0 && !bytes.HasPrefix(name, []byte("amq.")) && !bytes.HasSuffix(name, []byte(dueSuffix))
}

// let forgets a publication, whose publish passes or does not.
func (u *upward) let(channel uint16, p *publication) {
	delete(u.kept, channel)
	p.x = nil
	u.spare = p
}

// header deals with the frame behind a publish that was kept back: its content header, if the
// client keeps to the protocol.
func (u *upward) header(h head, p *publication, frame []byte) (instead []byte, passes bool) {
	x := p.x
	wish, err := noWish, error(nil)
	if h.kind == wire.FrameHeader {
		wish, err = u.content.read(frame)
	}
	switch state := x.state.Load(); {
	case wish == noWish && err == nil, state == plain:
	case state == unsure && u.answered != x:
		u.let(h.channel, p)
		u.holdFor(x, h.channel, append(p.frame, frame...))
		return nil, false
	case state == unsure:
		// Nobody could tell. The relay takes the time of its intake for the time of acceptance.
		u.l.gw.stats.unmarked.Add(1)
	case err != nil:
		u.let(h.channel, p)
		u.dropped[h.channel] = u.content.header.BodySize
		return u.refuse(&errand{channel: h.channel, key: x.key}, wire.BasicPublishID, err)
	case wish == served:
		u.redirection = redirected(u.redirection[:0], p.frame, x.key.name)
		return u.both(h, p, u.redirection, frame)
	default:
		marked := u.content.mark(h, frame, u.frameMax, &u.l.gw.stats)
		return u.both(h, p, p.frame, marked)
	}
	return u.both(h, p, p.frame, frame)
}

// drop takes a frame of the body of a refused message.
func (u *upward) drop(h head) {
	if left := u.dropped[h.channel]; left > uint64(h.size) {
		u.dropped[h.channel] = left - uint64(h.size)
		return
	}
	delete(u.dropped, h.channel)
}

// both lets a publish pass with what follows.
func (u *upward) both(h head, p *publication, publish, header []byte) (instead []byte, passes bool) {
	u.instead = append(append(u.instead[:0], publish...), header...)
	u.let(h.channel, p)
	return u.instead, false
}

// release has the publish that was kept back pass by itself, before a frame that is not to be seen.
func (u *upward) release(channel uint16, p *publication) {
	u.l.up.mail.post(letter{say: bytes.Clone(p.frame)})
	u.let(channel, p)
}

// redirected appends a publish to a delayed exchange as one to the exchange with its bindings.
func redirected(dst, publish []byte, name string) []byte {
	const before = headSize + idSize + 2 // and the reserved short
	dst = append(dst, publish[:before]...)
	dst = append(dst, byte(len(name)+len(dueSuffix)))
	dst = append(append(dst, name...), dueSuffix...)
	dst = append(dst, publish[before+1+len(name):]...)
	binary.BigEndian.PutUint32(dst[3:], uint32(len(dst)-wire.FrameOverhead))
	return dst
}
