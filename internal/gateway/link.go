package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

const (
	// greetingTimeout is how long a client may take for TLS and the protocol header.
	greetingTimeout = 10 * time.Second
	// farewell is how long the other side may still talk when one side has ended.
	farewell = 30 * time.Second
)

// link is one client with its broker. Its goroutines are the one that serves it, which is the
// upward pump's, and the downward pump's.
type link struct {
	gw     *Gateway
	log    *slog.Logger
	client net.Conn
	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	// Set before the pumps run.
	broker   net.Conn
	up, down *pump

	opened      atomic.Bool  // the client has opened its virtual host
	leaving     atomic.Bool  // the client was told to leave
	vhost       string       // as the client opened it; set before opened
	errandCount atomic.Int32 // of errands, so that most replies need no lock

	mu      sync.Mutex // guards errands
	errands map[uint16]*errand
}

func newLink(g *Gateway, client net.Conn) *link {
	l := &link{gw: g, client: client, errands: map[uint16]*errand{}}
	l.log = g.log.With("conn", client.RemoteAddr().String())
	l.ctx, l.cancel = context.WithCancel(g.ctx)
	// Whatever ends the link ends its sockets, and so its pumps. Closing TLS may wait for the
	// peer, so nobody else does it.
	context.AfterFunc(l.ctx, func() { client.Close() })
	return l
}

// serve carries until both sides have ended.
func (l *link) serve() {
	defer l.close()
	greeting, err := l.greeting()
	if err != nil {
		return // not a client: a port scan, a health check
	}
	if l.gw.cfg.ShowsCertificate && !isAMQP091(greeting) {
		l.gw.stats.turned.Add(1)
		l.log.Warn("connection ended: not AMQP 0-9-1, with a certificate towards the broker")
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, greetingTimeout)
	l.broker, err = l.gw.cfg.Dial(ctx)
	cancel()
	if err != nil {
		l.gw.stats.unreachable.Add(1)
		l.log.Warn("connection ended: no broker", "err", err)
		return
	}
	context.AfterFunc(l.ctx, func() { l.broker.Close() })
	if _, err := l.broker.Write(greeting); err != nil {
		return
	}
	l.up = l.newPump(l.client, l.broker)
	l.up.sieve = newUpward(l)
	l.down = l.newPump(l.broker, l.client)
	l.down.sieve = newDownward(l)
	l.down.impatient = true
	l.up.deaf = !isAMQP091(greeting)
	l.down.deaf = l.up.deaf
	var downward sync.WaitGroup
	downward.Go(func() { l.carry(l.down) })
	l.carry(l.up)
	downward.Wait()
}

// greeting reads the header that a client sends before its first frame. It is waited for before
// the broker is troubled. [amqp 4.2.2]
func (l *link) greeting() ([]byte, error) {
	if err := l.client.SetReadDeadline(time.Now().Add(greetingTimeout)); err != nil {
		return nil, err
	}
	b := make([]byte, len(wire.ProtocolHeader))
	if _, err := io.ReadFull(l.client, b); err != nil {
		return nil, err
	}
	return b, l.client.SetReadDeadline(time.Time{})
}

// isAMQP091 reports whether frames as we know them follow the header. RabbitMQ takes that of 0-9
// for 0-9-1.
func isAMQP091(greeting []byte) bool {
	return string(greeting) == wire.ProtocolHeader || string(greeting) == "AMQP\x01\x01\x00\x09"
}

func (l *link) newPump(src, dst net.Conn) *pump {
	return &pump{
		src: src, dst: dst, mail: newMailbox(src),
		done: l.ctx.Done(), buffers: &l.gw.buffers,
	}
}

// carry runs a pump. An orderly end of one side is passed on, and the other has some time to end,
// too; anything else ends the link at once.
func (l *link) carry(p *pump) {
	err := p.run()
	if !errors.Is(err, io.EOF) {
		if !isOrdinary(err) {
			l.log.Warn("connection ended", "err", fmt.Errorf("carry octets: %w", err))
		}
		l.close()
		return
	}
	half, ok := p.dst.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		l.close()
		return
	}
	end := time.AfterFunc(farewell, l.close)
	context.AfterFunc(l.ctx, func() { end.Stop() })
}

// close ends the link at once. It does not wait and may be called by anyone.
func (l *link) close() { l.cancel() }

// leave tells the client to close its connection, in the words of a broker that shuts down, if it
// has come so far. Its answer becomes a close of the broker's side. It does not wait.
func (l *link) leave() {
	if !l.opened.Load() {
		l.close()
		return
	}
	l.leaving.Store(true)
	reason := amqp.Error{Code: amqp.ConnectionForced, Text: "the gateway shuts down"}
	l.down.mail.post(letter{say: wire.AppendMethod(nil, 0,
		&wire.ConnectionClose{ReplyCode: reason.Code, ReplyText: reason.ReplyText()})})
}

// isOrdinary reports whether an error is how connections end every day.
func isOrdinary(err error) bool {
	for _, ordinary := range []error{
		net.ErrClosed, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE, os.ErrDeadlineExceeded,
	} {
		if errors.Is(err, ordinary) {
			return true
		}
	}
	return false
}
