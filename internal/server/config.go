package server

import (
	"log/slog"
	"time"

	"github.com/duepost/duepost/internal/broker"
)

// Config is what a Server needs. Zero values take the defaults named here.
type Config struct {
	// Broker is what clients talk to. Required.
	Broker *broker.Broker
	// Authenticator decides who a client is. Required.
	Authenticator Authenticator
	// Rights returns what a user may do in a virtual host; either may not exist. Nil permits
	// everything to everybody who is let in.
	Rights func(user, vhost string) broker.Rights
	// MaxUserConnections and MaxUserChannels return how many connections a user may have open,
	// and how many channels in all of them; negative for any number. Nil limits nobody.
	// [rmq user limits]
	MaxUserConnections, MaxUserChannels func(user string) int64
	// Logger receives the events of connections; nil discards them.
	Logger *slog.Logger
	// Version is told to clients in the server properties.
	Version string
	// ClusterName is told to clients in the server properties; "duepost" by
	// default.
	ClusterName string

	// ChannelMax is the most channels a connection may have; 2047 by default.
	ChannelMax uint16
	// FrameMax is the largest frame in octets, 131072 by default, at least 4096.
	FrameMax uint32
	// Heartbeat is the interval suggested to clients in whole seconds, which the
	// client has the last word on; 60 s by default, negative suggests none.
	Heartbeat time.Duration
	// MaxMessageSize is the largest body in octets; 128 MiB by default. A larger
	// one closes the channel with 406.
	MaxMessageSize int64
	// MaxConnections refuses connections beyond it; 0 means no limit.
	MaxConnections int

	// HandshakeTimeout is how long a client may take from connecting to
	// connection.open; 10 s by default.
	HandshakeTimeout time.Duration
	// WriteTimeout closes a connection whose peer accepts no octet for that long;
	// 30 s by default.
	WriteTimeout time.Duration
	// ConsumerTimeout is how long a delivery may wait for its ack before its channel is
	// closed with 406, unless consumer or queue say otherwise; 30 min by default, negative
	// for ever. [rmq consumer timeout]
	ConsumerTimeout time.Duration
	// CloseTimeout is how long close-ok is waited for; 3 s by default.
	CloseTimeout time.Duration

	// OutputHigh is how many octets may wait to be written to a client before no
	// more messages are delivered to it; 1 MiB by default.
	OutputHigh int
	// OutputLimit is how many octets may wait to be written to a client before
	// nothing more is read from it; 4 MiB by default.
	OutputLimit int
}

// withDefaults returns c with every zero value replaced.
func (c Config) withDefaults() Config {
	setDefault(&c.ClusterName, "duepost")
	setDefault(&c.Version, "dev")
	setDefault(&c.ChannelMax, 2047)
	setDefault(&c.FrameMax, 131072)
	setDefault(&c.Heartbeat, 60*time.Second)
	setDefault(&c.MaxMessageSize, 128<<20)
	setDefault(&c.HandshakeTimeout, 10*time.Second)
	setDefault(&c.WriteTimeout, 30*time.Second)
	setDefault(&c.ConsumerTimeout, 30*time.Minute)
	setDefault(&c.CloseTimeout, 3*time.Second)
	setDefault(&c.OutputHigh, 1<<20)
	setDefault(&c.OutputLimit, 4<<20)
	c.Heartbeat = max(c.Heartbeat, 0)
	c.FrameMax = max(c.FrameMax, minFrameMax)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// minFrameMax is the frame size every peer must accept. [amqp connection.tune-ok]
const minFrameMax = 4096
