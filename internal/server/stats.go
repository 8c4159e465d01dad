package server

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
)

// Traffic is what went through one connection or all of them.
type Traffic struct {
	Published uint64 // messages received from publishers
	Confirmed uint64 // of them, answered by basic.ack
	Nacked    uint64 // of them, answered by basic.nack
	Returned  uint64 // of them, sent back as unroutable
	Delivered uint64 // messages sent to consumers
	Got       uint64 // messages fetched by basic.get
	Acked     uint64
	Rejected  uint64
	Requeued  uint64
	Channels  uint64 // opened so far
	BytesIn   uint64
	BytesOut  uint64
}

// Stats are the counters of a server since it was made.
type Stats struct {
	Traffic

	Connections       int // open now
	ConnectionsOpened uint64
	ConnectionsClosed uint64
	Blocked           bool // publishers are asked to stop

	HandshakeTimeouts uint64
	WrongHeaders      uint64 // connections that did not speak AMQP 0-9-1
	AuthRefused       uint64
	Refused           uint64 // beyond the limit of connections
	FrameErrors       uint64 // what came was no frame
	ConnectionErrors  uint64 // closed with an error by us
	ChannelErrors     uint64
	HeartbeatsMissed  uint64
	WritesStalled     uint64 // clients that did not read
	AbruptCloses      uint64 // clients that left without a word
	Panics            uint64
	AcceptErrors      uint64
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	n := func(ev event) uint64 { return s.events.counts[ev].Load() }
	st := Stats{
		HandshakeTimeouts: n(eventHandshakeTimeout),
		WrongHeaders:      n(eventWrongHeader),
		AuthRefused:       n(eventAuthRefused),
		Refused:           n(eventRefused),
		FrameErrors:       n(eventFrameError),
		ConnectionErrors:  n(eventConnectionError),
		ChannelErrors:     n(eventChannelError),
		HeartbeatsMissed:  n(eventHeartbeatMissed),
		WritesStalled:     n(eventWriteStalled),
		AbruptCloses:      n(eventAbruptClose),
		Panics:            n(eventPanic),
		AcceptErrors:      n(eventAccept),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum tally
	sum.add(&s.total)
	for c := range s.conns {
		sum.add(c.counts())
	}
	st.Traffic = sum.traffic()
	st.Connections = len(s.conns)
	st.ConnectionsOpened = s.opened
	st.ConnectionsClosed = s.ended
	st.Blocked = s.blocked != ""
	return st
}

func (t *tally) traffic() Traffic {
	return Traffic{
		Published: t.published.Load(),
		Confirmed: t.confirmed.Load(),
		Nacked:    t.nacked.Load(),
		Returned:  t.returned.Load(),
		Delivered: t.delivered.Load(),
		Got:       t.got.Load(),
		Acked:     t.acked.Load(),
		Rejected:  t.rejected.Load(),
		Requeued:  t.requeued.Load(),
		Channels:  t.channels.Load(),
		BytesIn:   t.bytesIn.Load(),
		BytesOut:  t.bytesOut.Load(),
	}
}

// ConnInfo describes one connection for an operator.
type ConnInfo struct {
	// Name is "client address -> server address".
	Name string
	// ProvidedName is the connection_name among the client's properties.
	ProvidedName string
	// State is handshake, running, blocked or closing.
	State            string
	User, VHost      string
	Mechanism        string // of authentication
	TLS              bool
	ClientProperties amqp.Table
	Remote, Local    net.Addr
	Since            time.Time
	Channels         []ChannelInfo
	ChannelMax       uint16
	FrameMax         uint32 // octets
	Heartbeat        time.Duration
	OutputPending    int64 // octets that wait to be written
	Traffic          Traffic
}

// ChannelInfo describes one channel for an operator.
type ChannelInfo struct {
	Number         uint16
	Confirming     bool
	Transactional  bool
	Consumers      int
	Unacknowledged int // deliveries that wait for an ack
	Prefetch       int // of the channel, 0 for no limit
	Subscriptions  []ConsumerInfo
}

// ConsumerInfo describes one consumer for an operator.
type ConsumerInfo struct {
	Tag       string
	Queue     string // "" for direct replies
	NoAck     bool
	Exclusive bool
	Prefetch  int // 0 for no limit
	Args      amqp.Table
	Consumer  *broker.Consumer // nil for direct replies
}

func (c *conn) counts() *tally {
	c.tally.bytesOut.Store(c.out.written.Load())
	return &c.tally
}

// info describes the connection. Any goroutine.
func (c *conn) info() ConnInfo {
	c.mu.Lock()
	told := c.told
	channels := make([]ChannelInfo, 0, len(c.channels))
	for _, ch := range c.channels {
		channels = append(channels, ch.info())
	}
	c.mu.Unlock()
	state := phase(c.phase.Load()).String()
	if told.blocked != "" {
		state = "blocked"
	}
	name, _ := told.peer.properties["connection_name"].(string)
	return ConnInfo{
		Name:             c.name,
		ProvidedName:     name,
		State:            state,
		User:             told.peer.user,
		VHost:            told.peer.vhost,
		Mechanism:        told.peer.mechanism,
		TLS:              told.peer.tls,
		ClientProperties: told.peer.properties,
		Remote:           c.nc.RemoteAddr(),
		Local:            c.nc.LocalAddr(),
		Since:            c.since,
		Channels:         channels,
		ChannelMax:       told.peer.channelMax,
		FrameMax:         told.peer.frameMax,
		Heartbeat:        told.peer.heartbeat,
		OutputPending:    c.out.pending.Load(),
		Traffic:          c.counts().traffic(),
	}
}

func (ch *channel) info() ChannelInfo {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ChannelInfo{
		Number:         ch.number,
		Confirming:     ch.isConfirming.Load(),
		Transactional:  ch.isTransactional.Load(),
		Consumers:      len(ch.consumers),
		Unacknowledged: ch.window.live,
		Prefetch:       int(ch.limit.Load()),
		Subscriptions:  ch.subscriptionsLocked(),
	}
}

func (ch *channel) subscriptionsLocked() []ConsumerInfo {
	var infos []ConsumerInfo
	for tag, k := range ch.consumers {
		info := ConsumerInfo{Tag: tag, NoAck: k.noAck, Prefetch: int(k.prefetch)}
		if c, ok := k.handle.(*broker.Consumer); ok {
			info.Queue, info.Exclusive, info.Args = c.Queue().Name(), c.Exclusive(), c.Arguments()
			info.Consumer = c
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b ConsumerInfo) int { return strings.Compare(a.Tag, b.Tag) })
	return infos
}
