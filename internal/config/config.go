// Package config is about what an operator can set: the settings of the broker with their
// defaults, their checks and their printed form. It knows the text of a configuration file. It
// does not read flags or the environment (the command does), and nobody below the daemon sees it.
//
// The tags of a field are its whole outward face: name is the flag and the key in the file,
// DUEPOST_ plus the upper-cased name is the environment variable.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Config is everything that can be set for one broker. Nothing changes while it runs: each
// setting needs a restart. Start from Default.
type Config struct {
	// DataDir holds everything durable and is owned by one process at a time. It is created
	// when missing. Default ./duepost-data.
	DataDir string `name:"data-dir" json:"data-dir" default:"./duepost-data" help:"Directory of everything durable; one broker at a time."`

	// AMQPAddr is where clients connect. Default 127.0.0.1:5672; port 0 takes a free one.
	AMQPAddr string `name:"amqp-addr" json:"amqp-addr" default:"127.0.0.1:5672" help:"Where AMQP clients connect."`
	// AMQPSAddr is where clients connect with TLS; empty (the default) listens nowhere. It
	// needs TLSCert and TLSKey.
	AMQPSAddr string `name:"amqps-addr" json:"amqps-addr" placeholder:"HOST:PORT" help:"Where AMQP clients connect with TLS; needs --tls-cert and --tls-key. Off when empty."`
	// TLSCert is a PEM file with the certificate and its chain.
	TLSCert string `name:"tls-cert" json:"tls-cert" placeholder:"FILE" help:"PEM file with the certificate and its chain."`
	// TLSKey is a PEM file with the certificate's private key.
	TLSKey string `name:"tls-key" json:"tls-key" placeholder:"FILE" help:"PEM file with the private key."`
	// HTTPAddr serves /healthz and the management API. Default 127.0.0.1:15672; empty listens nowhere.
	HTTPAddr string `name:"http-addr" json:"http-addr" default:"127.0.0.1:15672" help:"Where the management API and /healthz answer. Off when empty."`

	// DefaultUser is the administrator that is made when there never was a user and no
	// definitions file brings one. A user named guest may connect from loopback only, whatever
	// its password. Default guest.
	DefaultUser string `name:"default-user" json:"default-user" default:"guest" help:"Name of the first user, an administrator, made on an empty directory. One named guest is let in from loopback only."`
	// DefaultPass is that user's password. Default guest. On a command line other users of the
	// machine can read it: prefer the environment or the file.
	DefaultPass Secret `name:"default-pass" json:"default-pass" default:"guest" help:"The first user's password; better set in the environment or the file."`

	// Definitions is a file with definitions in RabbitMQ's JSON that is imported at each start,
	// before clients may connect. A fault in it ends the start. Empty, the default, imports
	// nothing.
	Definitions string `name:"definitions" json:"definitions" placeholder:"FILE" help:"Definitions in RabbitMQ's JSON, imported at each start; what is there already stays."`

	// ChannelMax is the most channels a connection may have. Default 2047.
	ChannelMax uint16 `name:"channel-max" json:"channel-max" default:"2047" help:"Most channels of a connection."`
	// FrameMax is the largest frame in bytes, at least 4096. Default 131072.
	FrameMax uint32 `name:"frame-max" json:"frame-max" default:"131072" help:"Largest frame in bytes."`
	// Heartbeat is suggested to clients, which have the last word; 0 suggests none. Default 60s.
	Heartbeat time.Duration `name:"heartbeat" json:"-" default:"60s" help:"Heartbeat interval suggested to clients; 0 for none."`
	// MaxConnections refuses connections beyond it; 0, the default, is no limit.
	MaxConnections int `name:"max-connections" json:"max-connections" default:"0" help:"Most connections; 0 for no limit."`
	// MaxMessageSize is the largest body in bytes, at most 512 MiB. A larger one closes its
	// channel. Default 134217728 (128 MiB).
	MaxMessageSize int64 `name:"max-message-size" json:"max-message-size" default:"134217728" help:"Largest body in bytes."`
	// MaxParked is how many messages a virtual host keeps that were due and that nobody took;
	// beyond it they stay delayed and are tried again. Default 1000000.
	MaxParked int `name:"max-parked" json:"max-parked" default:"1000000" help:"Most parked messages of a virtual host: due, but taken by no queue."`

	// DelayedCompat is what delayed exchanges do of which neither arguments nor a policy say
	// otherwise: strict, the default, is our own way, plugin that of RabbitMQ's plugin, with what
	// SEMANTICS.md says about it.
	DelayedCompat string `name:"delayed-compat" json:"delayed-compat" enum:"strict,plugin" default:"strict" help:"Whose ways delayed exchanges have: ${enum}; plugin is for those who depend on the oddities of RabbitMQ's."`

	// ClientXDeath is what becomes of an x-death header that a publisher sent when the message is
	// dead-lettered: replace, the default, as in RabbitMQ 4, or continue, as in RabbitMQ 3.
	ClientXDeath string `name:"client-x-death" json:"client-x-death" enum:"replace,continue" default:"replace" help:"What dead-lettering does with an x-death that the publisher sent: ${enum}."`

	// QueueIndexMemory is the memory in bytes for what queues know about their messages, 24
	// for each; beyond it, what is far from being delivered is in a scratch file of the data
	// directory. Default 67108864 (64 MiB).
	QueueIndexMemory int64 `name:"queue-index-memory" json:"queue-index-memory" default:"67108864" help:"Bytes of memory for the index of queues, 24 a message; the rest of it goes to a scratch file."`

	// LogFileBytes is the size in bytes of the files of the log. Delayed messages that wait longer
	// than it takes to write twice as much of them go to sorted files of that double size. Default 16777216 (16 MiB).
	LogFileBytes int64 `name:"log-file-bytes" json:"log-file-bytes" default:"16777216" help:"Bytes of a file of the log; what is delayed beyond twice that goes to sorted files."`

	// ConsumerTimeout closes a channel whose oldest delivery was not acknowledged for that
	// long, unless the queue or the consumer says otherwise; 0 is for ever. Default 30m.
	ConsumerTimeout time.Duration `name:"consumer-timeout" json:"-" default:"30m" help:"Longest wait for the ack of a delivery before its channel is closed; 0 for ever."`

	// StopTimeout bounds the orderly stop; what has not ended by then is cut. Default 10s.
	StopTimeout time.Duration `name:"stop-timeout" json:"-" default:"10s" help:"Longest wait for connections to end at a stop."`

	// LogLevel is the least severe level that is written: debug, info, warn or error.
	LogLevel string `name:"log-level" json:"log-level" enum:"debug,info,warn,error" default:"info" help:"Least severe level written: ${enum}."`
	// LogFormat is text or json. The log goes to standard error.
	LogFormat string `name:"log-format" json:"log-format" enum:"text,json" default:"text" help:"Form of the log on standard error: ${enum}."`
}

const (
	minFrameMax    = 4096                // every peer must accept it [amqp connection.tune-ok]
	maxHeartbeat   = 65535 * time.Second // a 16-bit number of seconds on the wire
	maxMessageSize = 512 << 20           // half of what the store's format can hold

	minQueueIndexMemory = 1 << 20 // less is only more reading
	minLogFileBytes     = 256 << 10
)

// Secret is a value that is never printed.
type Secret string

// String masks the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "********"
}

// MarshalText masks the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Default returns the settings in force when nothing is said.
func Default() Config {
	return Config{
		DataDir:     "./duepost-data",
		AMQPAddr:    "127.0.0.1:5672",
		HTTPAddr:    "127.0.0.1:15672",
		DefaultUser: "guest",
		DefaultPass: "guest",

		ChannelMax:     2047,
		FrameMax:       131072,
		Heartbeat:      60 * time.Second,
		MaxMessageSize: 128 << 20,
		MaxParked:      1_000_000,
		DelayedCompat:  "strict",
		ClientXDeath:   "replace",

		QueueIndexMemory: 64 << 20, LogFileBytes: 16 << 20,

		ConsumerTimeout: 30 * time.Minute,

		StopTimeout: 10 * time.Second,
		LogLevel:    "info",
		LogFormat:   "text",
	}
}

// Validate names all faults at once and changes nothing.
func (c Config) Validate() error {
	faults := []error{
		checkAddr("amqp-addr", c.AMQPAddr),
		checkAddr("amqps-addr", c.AMQPSAddr),
		checkAddr("http-addr", c.HTTPAddr),
	}
	if c.DataDir == "" {
		faults = append(faults, errors.New("data-dir: is empty, must name a directory"))
	}
	if c.AMQPAddr == "" && c.AMQPSAddr == "" {
		faults = append(faults, errors.New("amqp-addr: is empty and so is amqps-addr, "+
			"no client could connect; set one of them to HOST:PORT"))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		faults = append(faults, errors.New("tls-cert, tls-key: must be set together"))
	}
	if c.AMQPSAddr != "" && c.TLSCert == "" {
		faults = append(faults, errors.New("amqps-addr: needs tls-cert and tls-key"))
	}
	if c.DefaultUser == "" {
		faults = append(faults, errors.New("default-user: is empty, must be a name"))
	}
	least := func(name string, v, limit int64) {
		if v < limit {
			faults = append(faults, fmt.Errorf("%s: is %d, must be at least %d", name, v, limit))
		}
	}
	least("channel-max", int64(c.ChannelMax), 1)
	least("frame-max", int64(c.FrameMax), minFrameMax)
	least("max-connections", int64(c.MaxConnections), 0)
	least("max-message-size", c.MaxMessageSize, 1)
	least("max-parked", int64(c.MaxParked), 1)
	least("queue-index-memory", c.QueueIndexMemory, minQueueIndexMemory)
	least("log-file-bytes", c.LogFileBytes, minLogFileBytes)
	if c.MaxMessageSize > maxMessageSize {
		faults = append(faults, fmt.Errorf("max-message-size: is %d, must be at most %d", c.MaxMessageSize, maxMessageSize))
	}
	if c.Heartbeat < 0 || c.Heartbeat > maxHeartbeat || c.Heartbeat%time.Second != 0 {
		faults = append(faults, fmt.Errorf("heartbeat: is %v, must be whole seconds from 0s to %v", c.Heartbeat, maxHeartbeat))
	}
	if c.ConsumerTimeout < 0 {
		faults = append(faults, fmt.Errorf("consumer-timeout: is %v, must be at least 0s", c.ConsumerTimeout))
	}
	if c.StopTimeout <= 0 {
		faults = append(faults, fmt.Errorf("stop-timeout: is %v, must be above 0", c.StopTimeout))
	}
	faults = append(faults, checkWord("delayed-compat", c.DelayedCompat, "strict", "plugin"),
		checkWord("client-x-death", c.ClientXDeath, "replace", "continue"),
		checkWord("log-level", c.LogLevel, "debug", "info", "warn", "error"),
		checkWord("log-format", c.LogFormat, "text", "json"))
	return errors.Join(faults...)
}

// JSON is the effective configuration as a configuration file, secrets masked.
func (c Config) JSON() ([]byte, error) {
	type plain Config
	return json.MarshalIndent(struct {
		plain
		Heartbeat       string `json:"heartbeat"`
		ConsumerTimeout string `json:"consumer-timeout"`
		StopTimeout     string `json:"stop-timeout"`
	}{plain(c), short(c.Heartbeat), short(c.ConsumerTimeout), short(c.StopTimeout)}, "", "  ")
}

// short leaves out what is zero at the end: 1m and not 1m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// checkAddr accepts HOST:PORT with a numeric port, and nothing at all.
func checkAddr(name, addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %q is not HOST:PORT, such as 127.0.0.1:5672 or [::1]:5672", name, addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s: port %q is not a number from 0 to 65535", name, port)
	}
	return nil
}

// checkWord accepts one of a few words.
func checkWord(name, word string, allowed ...string) error {
	for _, a := range allowed {
		if word == a {
			return nil
		}
	}
	return fmt.Errorf("%s: %q is not one of %v", name, word, allowed)
}
