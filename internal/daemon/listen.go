package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/duepost/duepost/internal/httpapi"
	"github.com/duepost/duepost/internal/server"
)

// serveHTTP listens and answers, if an address is set.
func (d *Daemon) serveHTTP(log *slog.Logger) error {
	if d.cfg.HTTPAddr == "" {
		return nil
	}
	ln, err := listen("http-addr", d.cfg.HTTPAddr)
	if err != nil {
		return err
	}
	d.httpAddr = ln.Addr()
	d.http = httpapi.NewServer(httpapi.New(httpapi.Config{Health: d.Health, Logger: log}))
	d.serving.Go(func() { d.noteBroken(d.http.Serve(ln)) })
	return nil
}

// serveAMQP listens on each address that is set and accepts clients.
func (d *Daemon) serveAMQP() error {
	var lns []net.Listener
	closeAll := func() {
		for _, ln := range lns {
			ln.Close()
		}
	}
	if d.cfg.AMQPAddr != "" {
		ln, err := listen("amqp-addr", d.cfg.AMQPAddr)
		if err != nil {
			return err
		}
		lns = append(lns, ln)
		d.amqpAddr = ln.Addr()
	}
	if d.cfg.AMQPSAddr != "" {
		ln, err := d.listenTLS()
		if err != nil {
			closeAll()
			return err
		}
		lns = append(lns, ln)
		d.amqpsAddr = ln.Addr()
	}
	for _, ln := range lns {
		d.serving.Go(func() { d.noteBroken(d.server.Serve(ln)) })
	}
	return nil
}

func (d *Daemon) listenTLS() (net.Listener, error) {
	cert, err := tls.LoadX509KeyPair(d.cfg.TLSCert, d.cfg.TLSKey)
	if err != nil {
		return nil, &StartError{
			Setting: "tls-cert", Value: d.cfg.TLSCert, Err: err,
			hint: "tls-cert and tls-key must be readable PEM files that belong together",
		}
	}
	ln, err := listen("amqps-addr", d.cfg.AMQPSAddr)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(ln, &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS12,
	}), nil
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

func listen(setting, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(setting, addr, err)
	}
	return ln, nil
}
