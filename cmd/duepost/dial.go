package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// defaultURL is where serve listens unless told otherwise.
const defaultURL = "amqp://guest:guest@127.0.0.1:5672/"

// dialTimeout bounds connecting and logging in. A broker answers in milliseconds; whoever typed
// a wrong port should not wait long to hear of it.
const dialTimeout = 3 * time.Second

// brokerURL is the flag that every client verb has.
type brokerURL struct {
	URL string `name:"url" default:"amqp://guest:guest@127.0.0.1:5672/" help:"The broker, any that speaks AMQP 0-9-1."`
}

// dial connects and turns the usual faults into errors with a hint.
func (b brokerURL) dial(verb string) (*amqp.Connection, error) {
	uri, err := amqp.ParseURI(b.URL)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--url: %w", err),
			"the form is amqp://USER:PASSWORD@HOST:PORT/VHOST"}
	}
	props := amqp.NewConnectionProperties()
	props.SetClientConnectionName("duepost " + verb)
	p := &peer{}
	conn, err := amqp.DialConfig(b.URL, amqp.Config{Properties: props, Dial: p.dial})
	if err == nil {
		return conn, nil
	}
	said, hint := p.explain(uri.Scheme)
	if said != "" {
		err = errors.New(said)
	} else if hint == "" {
		hint = dialHint(err)
	}
	return nil, &hintedError{fmt.Errorf("connect to %s:%d: %w", uri.Host, uri.Port, err), hint, exitFailed}
}

func dialHint(err error) string {
	var netErr net.Error
	var said *amqp.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there; `duepost serve` starts a broker, --url names another one"
	case errors.As(err, &said) && said.Code == amqp.AccessRefused:
		return "user or password is not right; a user named guest is let in from loopback only"
	case errors.As(err, &said) && said.Code == amqp.NotAllowed:
		return "the last part of --url is the vhost; / alone stands for the default one"
	case errors.As(err, &netErr) && netErr.Timeout():
		return "the host does not answer; is the address right, and a firewall between?"
	}
	return ""
}

// peer is a connection that remembers how the other side began, to tell what it speaks.
type peer struct {
	net.Conn

	mu    sync.Mutex // guards heard
	heard []byte
}

// heardMax is enough for the first line of most protocols.
const heardMax = 64

func (p *peer) dial(network, addr string) (net.Conn, error) {
	conn, err := amqp.DefaultDial(dialTimeout)(network, addr)
	if err != nil {
		return nil, err
	}
	p.Conn = conn
	return p, nil
}

// Read reads and remembers.
func (p *peer) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, b[:min(n, heardMax-len(p.heard))]...)
	return n, err
}

// First octets that tell protocols apart.
const (
	amqpMethodFrame = 1  // connection.start is the first frame [amqp 2.3.5]
	tlsAlert        = 21 // what a TLS server answers to something else
	tlsHandshake    = 22
)

// explain says what went wrong where the other side does not speak AMQP 0-9-1; it is empty where
// the error of the client library says more.
func (p *peer) explain(scheme string) (said, hint string) {
	if p.Conn == nil {
		return "", "" // nobody was reached
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	const ports = "is the port right? Brokers listen for AMQP on 5672, with TLS on 5671; 15672 is HTTP"
	first := byte(0)
	if len(p.heard) > 0 {
		first = p.heard[0]
	}
	switch {
	case len(p.heard) == 0:
		return "connected, but the other side does not answer in AMQP", ports
	case bytes.HasPrefix(p.heard, []byte("AMQP")):
		return "the other side speaks another version of AMQP, not 0-9-1", ""
	case scheme == "amqps" && first != tlsAlert && first != tlsHandshake:
		return "the other side does not speak TLS", "amqp:// connects without it"
	case scheme == "amqps" || first == amqpMethodFrame:
		return "", ""
	case first == tlsAlert:
		return "the other side speaks TLS", "amqps:// connects with it"
	}
	line, _, _ := bytes.Cut(p.heard, []byte("\n"))
	return "the other side answers " + strconv.Quote(string(bytes.TrimSpace(line))) + ", which is not AMQP", ports
}
