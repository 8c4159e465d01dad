package duepost

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const defaultURL = "amqp://guest:guest@localhost:5672/"

// dialer makes connections to one of several addresses. It remembers which one answered last.
type dialer struct {
	urls      []string
	name      string
	tls       *tls.Config
	heartbeat time.Duration
	timeout   time.Duration // for one attempt

	last atomic.Int32 // index of the address that answered last
}

func newDialer(o Options) (*dialer, error) {
	d := &dialer{name: o.Name, tls: o.TLS, heartbeat: o.Heartbeat, timeout: o.ConnectTimeout}
	for url := range strings.SplitSeq(o.URL, ",") {
		url = strings.TrimSpace(url)
		if _, err := amqp.ParseURI(url); err != nil {
			// The text of url is left out: there may be a password in it.
			return nil, invalid("parse URL %d of %d (%v; a comma in a password is written %%2C)",
				len(d.urls)+1, strings.Count(o.URL, ",")+1, err)
		}
		d.urls = append(d.urls, url)
	}
	return d, nil
}

// round tries each address once and returns the first connection, or what each of them said.
func (d *dialer) round(ctx context.Context, role string) (*amqp.Connection, error) {
	var errs []error
	first := int(d.last.Load())
	for i := range d.urls {
		at := (first + i) % len(d.urls)
		conn, err := d.dial(ctx, d.urls[at], role)
		if err == nil {
			d.last.Store(int32(at))
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("connect to %s: %w", hostOf(d.urls[at]), err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (d *dialer) dial(ctx context.Context, url, role string) (*amqp.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	stop := func() bool { return true }
	conn, err := amqp.DialConfig(url, amqp.Config{
		Heartbeat:       d.heartbeat,
		TLSClientConfig: d.tls,
		Properties: amqp.Table{
			"product": "Duepost SDK", "platform": "Go", "connection_name": d.name + " (" + role + ")",
		},
		Dial: func(network, addr string) (net.Conn, error) {
			raw, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			// The handshake ends with ctx, too.
			stop = context.AfterFunc(ctx, func() { raw.Close() })
			return socket{raw}, nil
		},
	})
	if !stop() && err == nil { // ctx ended at the last moment
		conn.Close()
		err = ctx.Err()
	}
	return conn, err
}

// socket is a connection that is closed by the first error of reading. The client library finds
// a dead broker by reading; whoever is stuck in a write to it, with the locks that the library
// needs to end the connection, must be freed then.
type socket struct{ net.Conn }

// Read reads.
func (s socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err != nil {
		s.Close()
	}
	return n, err
}

// hostOf is an address without user and password.
func hostOf(url string) string {
	u, err := amqp.ParseURI(url)
	if err != nil {
		return "?"
	}
	return net.JoinHostPort(u.Host, fmt.Sprint(u.Port))
}

// refusal is what one round over all addresses says about whether to go on.
type refusal int

const (
	notRefused     refusal = iota
	perhapsRefused         // connections ended where brokers without a word for it refuse a login
	refused                // this user will not be let in anywhere
)

// refusalOf reads the error of a round: the least of what its addresses said.
func refusalOf(err error) refusal {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return notRefused
	}
	least := refused
	for _, one := range many.Unwrap() {
		var e *amqp.Error
		switch {
		case !errors.As(one, &e) || e.Code != amqp.AccessRefused && e.Code != amqp.NotAllowed:
			return notRefused
		case !e.Server: // the library's guess
			least = perhapsRefused
		}
	}
	return least
}

func programName() string {
	if len(os.Args) == 0 {
		return "duepost"
	}
	return filepath.Base(os.Args[0])
}
