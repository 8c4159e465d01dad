package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/httpapi"
	"github.com/duepost/duepost/internal/server"
)

// ports are the listeners, nil where no address is set. Who serves one closes it; close is for
// those that a failed start leaves over and does no harm to the others.
type ports struct{ amqp, amqps, http net.Listener }

// bind takes the ports, AMQP first: that it is taken says most about what goes on there.
func (p *ports) bind(c config.Config) error {
	var cert tls.Certificate
	if c.AMQPSAddr != "" {
		var err error
		if cert, err = tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			return &StartError{
				Setting: "tls-cert", Value: c.TLSCert, Err: err,
				hint: "tls-cert and tls-key must be readable PEM files that belong together",
			}
		}
	}
	for _, at := range []struct {
		setting, addr string
		ln            *net.Listener
	}{
		{"amqp-addr", c.AMQPAddr, &p.amqp},
		{"amqps-addr", c.AMQPSAddr, &p.amqps},
		{"http-addr", c.HTTPAddr, &p.http},
	} {
		if at.addr == "" {
			continue
		}
		ln, err := net.Listen("tcp", at.addr)
		if err != nil {
			return listenError(at.setting, at.addr, err)
		}
		*at.ln = ln
	}
	if p.amqps != nil {
		p.amqps = tls.NewListener(p.amqps, &tls.Config{
			Certificates: []tls.Certificate{cert},
			MinVersion:   tls.VersionTLS12,
		})
	}
	return nil
}

func (p *ports) close() {
	for _, ln := range []net.Listener{p.amqp, p.amqps, p.http} {
		if ln != nil {
			ln.Close()
		}
	}
}

// attr is what listens where, for the log.
func (p *ports) attr() slog.Attr {
	var attrs []any
	for _, at := range []struct {
		name string
		ln   net.Listener
	}{{"amqp", p.amqp}, {"amqps", p.amqps}, {"http", p.http}} {
		if at.ln != nil {
			attrs = append(attrs, slog.String(at.name, at.ln.Addr().String()))
		}
	}
	return slog.Group("", attrs...) // no name: the attributes stand for themselves
}

func addrOf(ln net.Listener) net.Addr {
	if ln == nil {
		return nil
	}
	return ln.Addr()
}

// serveHTTP answers, if an address is set.
func (d *Daemon) serveHTTP(log *slog.Logger) {
	if d.ports.http == nil {
		return
	}
	d.http = httpapi.NewServer(httpapi.New(httpapi.Config{Health: d.Health, Parts: d.parts, Logger: log}))
	d.serving.Go(func() { d.noteBroken(d.http.Serve(d.ports.http)) })
}

// serveAMQP accepts clients.
func (d *Daemon) serveAMQP() {
	for _, ln := range []net.Listener{d.ports.amqp, d.ports.amqps} {
		if ln != nil {
			d.serving.Go(func() { d.noteBroken(d.server.Serve(ln)) })
		}
	}
}

// noteBroken keeps the first error of a listener that ended though nobody stopped it.
func (d *Daemon) noteBroken(err error) {
	if err == nil || errors.Is(err, server.ErrClosed) {
		return
	}
	select {
	case d.broken <- fmt.Errorf("listener ended: %w", err):
	default:
	}
}
