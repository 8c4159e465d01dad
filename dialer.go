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
			return raw, nil
		},
	})
	if !stop() && err == nil { // ctx ended at the last moment
		conn.Close()
		err = ctx.Err()
	}
	return conn, err
}

// hostOf is an address without user and password.
func hostOf(url string) string {
	u, err := amqp.ParseURI(url)
	if err != nil {
		return "?"
	}
	return net.JoinHostPort(u.Host, fmt.Sprint(u.Port))
}

// isFinal reports whether each error of a round says that this user will not be let in.
func isFinal(err error) bool {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return isRefusal(err)
	}
	for _, one := range many.Unwrap() {
		if !isRefusal(one) {
			return false
		}
	}
	return true
}

// isRefusal reports whether a broker has answered that it does not want this user or does not
// have this virtual host.
func isRefusal(err error) bool {
	var e *amqp.Error
	return errors.As(err, &e) && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed)
}

func programName() string {
	if len(os.Args) == 0 {
		return "duepost"
	}
	return filepath.Base(os.Args[0])
}
