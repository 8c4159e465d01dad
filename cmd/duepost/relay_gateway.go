package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/duepost/duepost/internal/gateway"
)

// gatewayFlags are those of a relay's gateway.
type gatewayFlags struct {
	Addr    string `name:"gateway" placeholder:"HOST:PORT" help:"Also serve clients that declare x-delayed-message: they connect here instead of to RabbitMQ."`
	Only    bool   `name:"gateway-only" help:"Serve the gateway and hand on nothing: relays elsewhere do that."`
	TLSCert string `name:"gateway-tls-cert" placeholder:"FILE" help:"PEM file with the gateway's certificate and its chain: clients connect with TLS."`
	TLSKey  string `name:"gateway-tls-key" placeholder:"FILE" help:"PEM file with the private key."`
	Most    int    `name:"gateway-max-connections" placeholder:"N" help:"Turn clients away beyond so many; 0 for no limit."`
}

// gatewayGrace is how long clients of a gateway that stops may take to say goodbye.
const gatewayGrace = 5 * time.Second

// check says what is wrong with the flags.
func (f *gatewayFlags) check() error {
	var fault error
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		fault = errors.New("--gateway-tls-cert, --gateway-tls-key: must be set together")
	case f.Addr == "" && (f.Only || f.TLSCert != "" || f.Most != 0):
		fault = errors.New("--gateway-only, --gateway-tls-cert and --gateway-max-connections need --gateway")
	case f.Most < 0:
		fault = fmt.Errorf("--gateway-max-connections: is %d, must not be negative", f.Most)
	default:
		return nil
	}
	return &usageError{fault, "duepost relay --gateway 127.0.0.1:5673 serves clients there"}
}

// listen opens the gateway's port, with TLS if a certificate is given.
func (f *gatewayFlags) listen() (net.Listener, error) {
	var cert tls.Certificate
	if f.TLSCert != "" {
		var err error
		if cert, err = tls.LoadX509KeyPair(f.TLSCert, f.TLSKey); err != nil {
			return nil, &hintedError{fmt.Errorf("load certificate of the gateway: %w", err),
				"--gateway-tls-cert and --gateway-tls-key are PEM files that belong together", exitRefused}
		}
	}
	ln, err := net.Listen("tcp", f.Addr)
	if err != nil {
		return nil, &hintedError{fmt.Errorf("open the gateway's port: %w", err),
			"--gateway is HOST:PORT, free on this machine", exitRefused}
	}
	if f.TLSCert != "" {
		ln = tls.NewListener(ln, &tls.Config{
			Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		})
	}
	return ln, nil
}

// relayGateway is the gateway of a relay, with its port.
type relayGateway struct {
	*gateway.Gateway
	ln   net.Listener
	made *gateway.Brokered
}

// open makes the gateway in front of the RabbitMQ at urls, and opens its port.
func (f *gatewayFlags) open(urls []string, log *slog.Logger) (*relayGateway, error) {
	upstream, err := gateway.NewUpstream(urls, nil)
	if err != nil {
		return nil, &usageError{err, "the form is amqp://USER:PASSWORD@HOST:PORT/VHOST"}
	}
	ln, err := f.listen()
	if err != nil {
		return nil, err
	}
	made := gateway.NewBrokered(upstream.Connect)
	g, err := gateway.New(gateway.Config{
		Dial: upstream.Dial, ShowsCertificate: upstream.ShowsCertificate(),
		Topology: made, MaxConnections: f.Most, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return &relayGateway{g, ln, made}, nil
}

// run serves until ctx ends, and then tells clients to leave.
func (g *relayGateway) run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- g.Serve(g.ln) }()
	var err error
	select {
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatewayGrace)
		defer cancel()
		err = g.Shutdown(grace)
		<-served
	case err = <-served:
		err = fmt.Errorf("run gateway: %w", errors.Join(err, g.Close()))
	}
	_ = g.made.Close() // the broker may have gone before
	return err
}

// runAll runs all parts until ctx or one of them ends, and returns what was wrong.
func runAll(ctx context.Context, parts []func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var all []error
	for range parts {
		all = append(all, <-ended)
		cancel()
	}
	return errors.Join(all...)
}
