package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// phase is how far a connection is in its life.
type phase int32

const (
	phaseHandshake phase = iota
	phaseOpen
	phaseClosing // a close method was sent or received: nothing else will be sent
)

func (p phase) String() string {
	switch p {
	case phaseHandshake:
		return "handshake"
	case phaseOpen:
		return "running"
	}
	return "closing"
}

// conn is one connection. Its fields belong to the reader unless they say
// otherwise.
type conn struct {
	server  *Server
	nc      net.Conn
	name    string // as RabbitMQ: "127.0.0.1:40312 -> 127.0.0.1:5672"
	since   time.Time
	rd      *wire.Reader
	out     *output // any goroutine
	tally   tally   // any goroutine
	confirm confirms
	watch   watch

	phase   atomic.Int32  // a phase; any goroutine
	reads   atomic.Uint64 // read calls that brought something
	reading atomic.Bool   // the reader waits for the client and not for the broker
	unpark  chan struct{} // capacity 1: a parked reader looks again
	killed  chan struct{} // closed by kill
	once    sync.Once     // of kill
	written chan struct{} // closed when the writer has ended

	peer     peer
	session  *broker.Session
	last     *channel   // the channel of the last frame, which the next is likely to be for
	settling []*channel // channels with settles or confirms gathered since the last flush

	hasPublished bool

	lookedAt  atomic.Uint32 // what deliveries are marked with, see stamp
	hasErrand atomic.Bool   // the watch has left something for the reader

	mu       sync.Mutex // guards told, and channels against all but the reader reading
	channels map[uint16]*channel
	told     told
}

// told is what is known about a connection outside of its reader.
type told struct {
	peer      peer
	published bool   // has published, so it wants to know when publishers are blocked
	blocked   string // reason the client was told, "" if none
}

// peer is what the handshake found out about the client.
type peer struct {
	user       string
	vhost      string
	mechanism  string
	tls        bool
	properties amqp.Table
	frameMax   uint32
	channelMax uint16
	heartbeat  time.Duration

	canBlocked   bool // understands connection.blocked
	canCancel    bool // understands basic.cancel from the server
	canAuthClose bool // understands connection.close after a refused login
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		server:   s,
		nc:       nc,
		name:     fmt.Sprintf("%s -> %s", nc.RemoteAddr(), nc.LocalAddr()),
		since:    time.Now(),
		out:      newOutput(nc, s.cfg.OutputHigh, s.cfg.WriteTimeout),
		unpark:   make(chan struct{}, 1),
		killed:   make(chan struct{}),
		written:  make(chan struct{}),
		channels: map[uint16]*channel{},
	}
	c.out.drained = func() { go c.resume() }
	c.confirm = confirms{out: c.out, store: s.cfg.Broker, tally: &c.tally}
	c.rd = wire.NewReader(c, handshakeFrameMax)
	return c
}

// serve runs the connection to its end. It is the reader.
func (c *conn) serve() {
	defer c.kill()
	go c.write()
	c.read()
	// What was said last must reach the client, if the client reads.
	c.out.finish(time.Now().Add(c.server.cfg.CloseTimeout))
	<-c.written
}

// write runs the writer.
func (c *conn) write() {
	defer close(c.written)
	err := c.out.run()
	if err == nil {
		return // all is written; the reader closes the socket when it has done
	}
	open := phase(c.phase.Load()) == phaseOpen
	if first := c.kill(); !first || !open {
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.note(eventWriteStalled, slog.LevelWarn, "closing connection: client does not read",
			slog.Duration("dur", c.server.cfg.WriteTimeout))
		return
	}
	c.noteAbruptClose(err)
}

// read is the life of the connection as its reader sees it.
func (c *conn) read() {
	defer c.recoverPanic()
	defer c.release()
	_ = c.nc.SetDeadline(time.Now().Add(c.server.cfg.HandshakeTimeout))
	err := c.handshake()
	if err == nil {
		err = c.loop()
	}
	c.end(err)
}

// loop handles frames until the connection is over.
func (c *conn) loop() error {
	for {
		f, err := c.rd.Next()
		if err != nil {
			return err
		}
		if phase(c.phase.Load()) == phaseClosing {
			if !c.stillOpen(f) {
				return errDone
			}
			return errClosing
		}
		ch, err := c.handle(f)
		if err == nil {
			continue
		}
		if err = c.fail(ch, err); err != nil {
			return err
		}
	}
}

// errClosing says that a close method was sent or answered, so that the loop
// ends.
var errClosing = errors.New("connection is closing")

// errAnswered says that the client's own close method was answered.
var errAnswered = errors.New("connection is closed by the client")

// errDone says that the client has answered a close method.
var errDone = errors.New("connection is closed")

// Read implements io.Reader for the wire.Reader: what was gathered from the
// frames before is done before more is waited for.
func (c *conn) Read(p []byte) (int, error) {
	c.flush()
	c.awaitRoom()
	c.reading.Store(true)
	n, err := c.nc.Read(p)
	for n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && phase(c.phase.Load()) == phaseOpen {
		c.runErrands()
		n, err = c.nc.Read(p)
	}
	c.reading.Store(false)
	if n > 0 {
		c.reads.Add(1)
		c.tally.bytesIn.Add(uint64(n))
	}
	return n, err
}

// awaitRoom waits while the client has not taken what it is owed: nothing more is
// done for it until it does.
func (c *conn) awaitRoom() {
	if c.hasRoom() {
		return
	}
	c.park(func() bool { return !c.hasRoom() })
}

func (c *conn) hasRoom() bool {
	return c.out.pending.Load() <= int64(c.server.cfg.OutputLimit)
}

// park waits while the condition holds, until the connection is killed or
// closed by the server.
func (c *conn) park(while func() bool) {
	for while() && phase(c.phase.Load()) != phaseClosing {
		select {
		case <-c.out.room:
		case <-c.unpark:
		case <-c.killed:
			return
		}
	}
}

// wakeReader makes a parked reader look again.
func (c *conn) wakeReader() {
	select {
	case c.unpark <- struct{}{}:
	default:
	}
}

// kill cuts the connection off. It reports whether it was the first to. Any
// goroutine.
func (c *conn) kill() (first bool) {
	c.once.Do(func() {
		first = true
		close(c.killed)
		c.nc.Close()
	})
	return first
}

// note counts and logs an event of this connection.
func (c *conn) note(ev event, level slog.Level, msg string, attrs ...slog.Attr) {
	c.server.events.note(ev, level, msg, append([]slog.Attr{slog.String("conn", c.name)}, attrs...)...)
}
