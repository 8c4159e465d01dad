package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/wire"
)

// discardTimeout bounds the clearing up after a declaration that was refused.
const discardTimeout = 2 * time.Second

// errandKind is what an errand waits for.
type errandKind uint8

const (
	// declaring waits for declare-ok of the exchange that publishers see: the broker has checked
	// the client's right to it, and that it is no other. Then the topology attaches it to the relay.
	declaring errandKind = iota
	// declaringDue waits for declare-ok of the exchange with the bindings: the broker has checked
	// the client's right to it and to its alternate exchange. It comes last, so that at no time a
	// delayed message has a way to it that does not lead by the relay.
	declaringDue
	// deletingDue waits for delete-ok of the exchange that holds the bindings. Then the one that
	// publishers see is deleted.
	deletingDue
	// deletingOuter waits for delete-ok of that one.
	deletingOuter
	// refusing waits for channel.close to put a reason into it.
	refusing
)

// errand is work on the topology for one method of a client. Its channel is held until it ends, so
// there is never more than one on a channel.
type errand struct {
	kind    errandKind
	channel uint16
	key     exchangeKey
	noWait  bool              // the client wants no reply
	wanted  topology.Exchange // declaring, declaringDue
	reason  amqp.Error        // refusing
}

// begin notes an errand before the broker is told, so that the reply finds it.
func (l *link) begin(e *errand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errands[e.channel] = e
	l.errandCount.Store(int32(len(l.errands)))
}

// end takes out the errand of a channel, if there is one.
func (l *link) end(channel uint16) *errand {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.errands[channel]
	delete(l.errands, channel)
	l.errandCount.Store(int32(len(l.errands)))
	return e
}

// resume lets the client go on with the channel of an errand that has ended.
func (l *link) resume(channel uint16) { l.up.mail.post(letter{channel: channel, resume: true}) }

// outerDeclared goes on after the broker has accepted the exchange that publishers see.
func (l *link) outerDeclared(e *errand) {
	// Also if the client leaves: what was begun is better finished.
	l.gw.work.Go(func() {
		ctx, cancel := context.WithTimeout(l.gw.ctx, topologyTimeout)
		err := l.gw.cfg.Topology.Attach(ctx, e.key.vhost, e.key.name)
		cancel()
		var args amqp.RawTable
		if err == nil {
			args, err = dueArguments(e.wanted)
		}
		if err != nil {
			l.discard(e)
			l.refuse(e, wire.ExchangeDeclareID, err)
			return
		}
		x := e.wanted
		e.kind = declaringDue
		l.begin(e)
		l.up.mail.post(letter{say: wire.AppendMethod(nil, e.channel, &wire.ExchangeDeclare{
			Exchange: topology.DueExchange(x.Name), Type: x.Type, Durable: x.Durable, Arguments: args,
		})})
	})
}

// discard takes away an exchange that did not become a delayed one. If that is not to be had, it
// stays as it is until the client declares again.
func (l *link) discard(e *errand) {
	ctx, cancel := context.WithTimeout(l.gw.ctx, discardTimeout)
	defer cancel()
	if err := l.gw.cfg.Topology.Discard(ctx, e.key.vhost, e.key.name); err != nil {
		l.log.Warn("half of a delayed exchange is left", "vhost", e.key.vhost, "exchange", e.key.name, "err", err)
	}
}

// declared goes on after the broker has accepted both exchanges.
func (l *link) declared(e *errand) {
	l.gw.exchanges.note(e.key, delayed)
	l.gw.stats.declared.Add(1)
	l.log.Info("delayed exchange declared", "vhost", e.key.vhost, "exchange", e.key.name)
	if !e.noWait {
		l.down.mail.post(letter{say: wire.AppendMethod(nil, e.channel, &wire.ExchangeDeclareOk{})})
	}
	l.resume(e.channel)
}

// dueDeleted goes on after the exchange with the bindings is deleted.
func (l *link) dueDeleted(e *errand) {
	outer := wire.AppendMethod(nil, e.channel,
		&wire.ExchangeDelete{Exchange: e.key.name, NoWait: e.noWait})
	l.gw.exchanges.note(e.key, plain)
	if e.noWait {
		l.up.mail.post(letter{say: outer, channel: e.channel, resume: true})
		return
	}
	l.begin(&errand{kind: deletingOuter, channel: e.channel, key: e.key})
	l.up.mail.post(letter{say: outer})
}

// refuse has the broker close the channel of e, with err as the reason. It may be called by
// anyone; the channel stays held until the close has passed.
func (l *link) refuse(e *errand, id wire.MethodID, err error) {
	l.up.mail.post(letter{say: l.refusal(e, id, err)})
}

// refusal notes that the channel of e is to be closed and returns what makes the broker do it.
func (l *link) refusal(e *errand, id wire.MethodID, err error) []byte {
	reason := reasonOf(e.key, err)
	reason.Class, reason.Method = id.Class(), id.Method()
	l.gw.stats.refused.Add(1)
	l.log.Warn("method refused", "vhost", e.key.vhost, "exchange", e.key.name,
		"chan", e.channel, "err", err)
	l.begin(&errand{kind: refusing, channel: e.channel, key: e.key, reason: reason})
	return wire.AppendMethod(nil, e.channel,
		&wire.ExchangeDeclare{Exchange: l.gw.nowhere, Type: outerType, Passive: true})
}

// reasonOf makes of an error what a client is told.
func reasonOf(key exchangeKey, err error) amqp.Error {
	var reason *amqp.Error
	if errors.As(err, &reason) && reason.Scope() == amqp.ScopeChannel {
		return *reason
	}
	return amqp.Error{
		Code: amqp.PreconditionFailed,
		Text: fmt.Sprintf("delayed exchange '%s' in vhost '%s': %v", key.name, key.vhost, err),
	}
}

// replied goes on with the errand of a channel after a reply of the broker, and reports whether
// the reply is for the client.
func (l *link) replied(channel uint16, id wire.MethodID) (passes bool) {
	e := l.end(channel)
	switch {
	case e == nil:
		return true
	case e.kind == declaring && id == wire.ExchangeDeclareOkID:
		l.outerDeclared(e)
		return false
	case e.kind == declaringDue && id == wire.ExchangeDeclareOkID:
		l.declared(e)
		return false
	case e.kind == deletingDue && id == wire.ExchangeDeleteOkID:
		l.dueDeleted(e)
		return false
	case e.kind == deletingOuter && id == wire.ExchangeDeleteOkID:
		l.resume(channel)
		return true
	}
	// Out of step: the exchange that must not exist does, or the broker is none.
	l.log.Error("connection ended: reply out of step", slog.String("method", id.String()))
	l.close()
	return false
}

// closed goes on with the errand of a channel that the broker closes, and returns what the client is
// told in place of the frame, unless that passes. Who is refused hears of it when all is as before.
func (l *link) closed(channel uint16, frame []byte) (instead []byte, passes bool) {
	e := l.end(channel)
	switch {
	case e == nil:
		return nil, true
	case e.kind == declaringDue:
		said := bytes.Clone(frame)
		l.gw.work.Go(func() {
			l.discard(e)
			l.down.mail.post(letter{say: said})
			l.resume(channel)
		})
		return nil, false
	case e.kind == refusing:
		l.resume(channel)
		return wire.AppendMethod(nil, channel, &wire.ChannelClose{
			ReplyCode: e.reason.Code, ReplyText: e.reason.ReplyText(),
			ClassID: e.reason.Class, MethodID: e.reason.Method,
		}), false
	}
	l.resume(channel)
	return nil, true
}
