package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// handshakeFrameMax is the largest frame before both sides have agreed on one: room
// for client properties and tokens that serve as passwords.
const handshakeFrameMax = 64 << 10

// errRefused says that a client was refused and told all it may know.
var errRefused = errors.New("client refused")

// handshake takes the connection from its first octet to connection.open-ok.
// [amqp connection]
func (c *conn) handshake() error {
	// 1. TLS, if it is that kind of connection.
	if t, ok := c.nc.(*tls.Conn); ok {
		if err := t.Handshake(); err != nil {
			return err
		}
	}
	// 2. Protocol header: the wrong one is answered with ours. [amqp 4.2.2]
	if err := c.rd.ReadProtocolHeader(); err != nil {
		var wrong *wire.HeaderError
		if errors.As(err, &wrong) {
			c.out.endSealed(append(c.out.begin(), wire.ProtocolHeader...))
		}
		return err
	}
	// 3. Who is it?
	if err := c.authenticate(); err != nil {
		return err
	}
	// 4. Limits.
	if err := c.tune(); err != nil {
		return err
	}
	// 5. The virtual host.
	return c.open()
}

// authenticate makes the client prove who it is. Mechanisms that take a second
// step are not offered, so connection.secure is never sent.
func (c *conn) authenticate() error {
	state := c.tlsState()
	c.send(0, &wire.ConnectionStart{
		VersionMinor:     9,
		ServerProperties: c.server.properties(),
		Mechanisms:       mechanisms(state),
		Locales:          "en_US",
	})
	var ok wire.ConnectionStartOk
	if err := c.expect(&ok, "starting"); err != nil {
		return err
	}
	if err := c.readProperties(ok.ClientProperties); err != nil {
		return err
	}
	c.peer.mechanism = ok.Mechanism
	c.peer.tls = state != nil
	cred, err := readResponse(ok.Mechanism, ok.Response, state)
	if err != nil {
		return inMethod(err, ok.ID())
	}
	c.peer.user = cred.user
	if err := cred.check(c.server.cfg.Authenticator, c.nc.RemoteAddr()); err != nil {
		return c.refuse(err)
	}
	return nil
}

func (c *conn) tlsState() *tls.ConnectionState {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	state := t.ConnectionState()
	return &state
}

// refuse ends a login. Only a client that says that it understands gets a close
// method; others see the socket closed. [rmq authentication_failure_close]
func (c *conn) refuse(err error) error {
	c.note(eventAuthRefused, slog.LevelWarn, "login refused",
		slog.String("mechanism", c.peer.mechanism), slog.String("user", c.peer.user), slog.Any("err", err))
	if c.peer.canAuthClose {
		c.beginClose(amqp.Errorf(amqp.AccessRefused, "Login was refused using authentication mechanism %s. "+
			"For details see the broker logfile.", c.peer.mechanism))
		return errClosing
	}
	return errRefused
}

// readProperties notes what the client says about itself.
func (c *conn) readProperties(raw amqp.RawTable) error {
	properties, err := raw.Decode()
	if err != nil {
		return inMethod(err, wire.ConnectionStartOkID)
	}
	c.peer.properties = properties
	capabilities, _ := properties["capabilities"].(amqp.Table)
	can := func(name string) bool {
		v, _ := capabilities[name].(bool)
		return v
	}
	c.peer.canBlocked = can("connection.blocked")
	c.peer.canCancel = can("consumer_cancel_notify")
	c.peer.canAuthClose = can("authentication_failure_close")
	return nil
}

// properties are the server properties of connection.start.
func (s *Server) properties() amqp.RawTable {
	b, err := amqp.AppendTable(nil, amqp.Table{
		"product":      "Duepost",
		"version":      s.cfg.Version,
		"platform":     "Go " + strings.TrimPrefix(runtime.Version(), "go"),
		"cluster_name": s.cfg.ClusterName,
		"information":  "https://github.com/duepost/duepost",
		"capabilities": amqp.Table{
			"publisher_confirms":           true,
			"exchange_exchange_bindings":   true,
			"basic.nack":                   true,
			"consumer_cancel_notify":       true,
			"connection.blocked":           true,
			"consumer_priorities":          true,
			"authentication_failure_close": true,
			"per_consumer_qos":             true,
			"direct_reply_to":              true,
		},
	})
	if err != nil {
		return nil
	}
	return amqp.RawTable(b[4:])
}

// tune agrees on limits. The client has the last word within ours, and the
// heartbeat is its choice entirely. [amqp connection.tune-ok] [rmq heartbeats]
func (c *conn) tune() error {
	cfg := &c.server.cfg
	c.send(0, &wire.ConnectionTune{
		ChannelMax: cfg.ChannelMax,
		FrameMax:   cfg.FrameMax,
		Heartbeat:  uint16(min(cfg.Heartbeat/time.Second, 1<<16-1)),
	})
	var ok wire.ConnectionTuneOk
	if err := c.expect(&ok, "tuning"); err != nil {
		return err
	}
	if err := c.checkLimit("frame_max", uint64(ok.FrameMax), minFrameMax, uint64(cfg.FrameMax)); err != nil {
		return err
	}
	if err := c.checkLimit("channel_max", uint64(ok.ChannelMax), 1, uint64(cfg.ChannelMax)); err != nil {
		return err
	}
	c.peer.frameMax = ok.FrameMax
	c.peer.channelMax = ok.ChannelMax
	c.peer.heartbeat = time.Duration(ok.Heartbeat) * time.Second
	c.rd.SetMaxFrame(ok.FrameMax)
	return nil
}

// checkLimit refuses a negotiated value outside of what was offered. 0 asks for
// no limit, which is beyond ours.
func (c *conn) checkLimit(name string, value, lowest, highest uint64) error {
	if value != 0 && value < lowest {
		return inMethod(amqp.Errorf(amqp.NotAllowed,
			"negotiated %s = %d is lower than the minimum allowed value (%d)", name, value, lowest),
			wire.ConnectionTuneID)
	}
	if value == 0 || value > highest {
		detail := ""
		if value == 0 {
			detail = " (no limit)"
		}
		return inMethod(amqp.Errorf(amqp.NotAllowed,
			"negotiated %s = %d%s is higher than the maximum allowed value (%d)",
			name, value, detail, highest), wire.ConnectionTuneID)
	}
	return nil
}

// open enters the virtual host, after which channels can be opened.
func (c *conn) open() error {
	var m wire.ConnectionOpen
	if err := c.expect(&m, "opening"); err != nil {
		return err
	}
	session, err := c.server.cfg.Broker.Connect(m.VirtualHost, c.peer.user, c.server.rights(c.peer.user, m.VirtualHost))
	if err != nil {
		return inMethod(err, m.ID())
	}
	c.session = session
	c.peer.vhost = m.VirtualHost
	c.mu.Lock()
	c.told.peer = c.peer
	c.mu.Unlock()
	// From here on CloseVHost and CloseUser find the connection; before, this does.
	if err := cmp.Or(session.Check(), c.checkUserConnections()); err != nil {
		return inMethod(err, m.ID())
	}
	_ = c.nc.SetDeadline(time.Time{})
	// Open before the client hears of it: whoever has open-ok is told of a shutdown.
	if !c.phase.CompareAndSwap(int32(phaseHandshake), int32(phaseOpen)) {
		return errClosing
	}
	c.send(0, &wire.ConnectionOpenOk{})
	c.watch.start(c)
	c.server.log.Debug("connection open", "conn", c.name, "user", c.peer.user, "vhost", m.VirtualHost)
	return nil
}

func (s *Server) rights(user, vhost string) broker.Rights {
	if s.cfg.Rights == nil {
		return nil
	}
	return s.cfg.Rights(user, vhost)
}

// expect reads frames until the method that is due now. Heartbeats may come at
// any time. [amqp 4.2.7]
func (c *conn) expect(m wire.Method, state string) error {
	for {
		f, err := c.rd.Next()
		if err != nil {
			return err
		}
		if f.Type == wire.FrameHeartbeat && f.Channel == 0 {
			continue
		}
		if f.Type != wire.FrameMethod || f.Channel != 0 {
			return amqp.Errorf(amqp.UnexpectedFrame, "type %d on channel %d in connection state %s",
				f.Type, f.Channel, state)
		}
		id, args, err := wire.CutMethodID(f.Payload)
		if err != nil {
			return err
		}
		if id == wire.ConnectionCloseID {
			return c.closedByClient()
		}
		if id != m.ID() {
			return inMethod(amqp.Errorf(amqp.ChannelError,
				"unexpected method in connection state %s", state), id)
		}
		return m.Decode(args)
	}
}

// noteHandshake reports a handshake that came to nothing. A connection that was
// opened and dropped without an octet is how load balancers see whether we live.
func (c *conn) noteHandshake(err error) {
	var wrong *wire.HeaderError
	switch {
	case errors.As(err, &wrong):
		c.note(eventWrongHeader, slog.LevelWarn, "closing connection: not AMQP 0-9-1", slog.Any("err", err))
		c.hangUp()
	case errors.Is(err, errRefused):
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.note(eventHandshakeTimeout, slog.LevelWarn, "closing connection: handshake took too long",
			slog.Duration("dur", c.server.cfg.HandshakeTimeout))
	case c.isKilled():
	case c.reads.Load() == 0:
		c.server.log.Debug("connection dropped before anything was sent", "conn", c.name)
	default:
		c.note(eventAbruptClose, slog.LevelWarn, "client left during the handshake", slog.Any("err", err))
	}
}

// inMethod adds the method to an error, if it does not name one yet.
func inMethod(err error, id wire.MethodID) error {
	if err == nil {
		return nil // before e, which is allocated
	}
	var e *amqp.Error
	if errors.As(err, &e) && e.Class == 0 {
		e.Class, e.Method = id.Class(), id.Method()
	}
	return err
}
