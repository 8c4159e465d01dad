package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	// nodeTimeout is how long a node may take to accept a connection, with TLS, before the next
	// is tried.
	nodeTimeout = 3 * time.Second
	// ownHeartbeat is that of the relay's own connections.
	ownHeartbeat = 5 * time.Second
)

// Upstream is a RabbitMQ with one node or several. Made by NewUpstream; safe for concurrent use.
type Upstream struct {
	nodes []amqp091.URI
	tls   *tls.Config
	next  atomic.Uint32 // the node to try first
}

// NewUpstream returns the RabbitMQ whose nodes are at urls, amqp:// or amqps://, with the relay's
// own credentials in them. settings are for amqps; nil for the system's authorities. What a URL says
// of TLS (cacertfile, certfile, keyfile, server_name_indication) counts for its node. [rmq uri-query-parameters]
func NewUpstream(urls []string, settings *tls.Config) (*Upstream, error) {
	if len(urls) == 0 {
		return nil, errors.New("read URLs of RabbitMQ: there are none")
	}
	u := &Upstream{tls: settings}
	for _, text := range urls {
		uri, err := amqp091.ParseURI(text)
		if err != nil {
			var quoted *url.Error // with the whole URL in it
			if errors.As(err, &quoted) {
				err = quoted.Err
			}
			return nil, fmt.Errorf("read URL of RabbitMQ %s: %w", withoutPassword(text), err)
		}
		u.nodes = append(u.nodes, uri)
	}
	return u, nil
}

// withoutPassword is a URL as it may be shown.
func withoutPassword(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return "(which is none)" // and may hold a password anywhere
	}
	return parsed.Redacted()
}

// Dial connects to a node for a client, without a word of AMQP: to each in turn, and if that one
// does not answer to another.
func (u *Upstream) Dial(ctx context.Context) (net.Conn, error) {
	var conn net.Conn
	err := u.each(func(node amqp091.URI) (err error) {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
		defer cancel()
		conn, err = u.dialNode(ctx, node)
		return err
	})
	return conn, err
}

func (u *Upstream) dialNode(ctx context.Context, node amqp091.URI) (net.Conn, error) {
	addr := net.JoinHostPort(node.Host, strconv.Itoa(node.Port))
	if node.Scheme != "amqps" {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	settings, err := u.tlsFor(node)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", addr)
}

// Connect opens a connection of the relay's own to a virtual host. It is what [NewBrokered] wants.
func (u *Upstream) Connect(vhost string) (*amqp091.Connection, error) {
	var conn *amqp091.Connection
	err := u.each(func(node amqp091.URI) error {
		settings, err := u.tlsFor(node)
		if err != nil {
			return err
		}
		conn, err = amqp091.DialConfig(node.String(), amqp091.Config{
			Vhost: vhost, Heartbeat: ownHeartbeat, Locale: "en_US",
			TLSClientConfig: settings, Dial: amqp091.DefaultDial(nodeTimeout),
			Properties: amqp091.Table{"connection_name": "duepost gateway"},
		})
		return err
	})
	return conn, err
}

// tlsFor are the settings for a node, which must be who its URL says; nil without TLS. Files that
// the URL names are read each time, so that new ones count at once.
func (u *Upstream) tlsFor(node amqp091.URI) (*tls.Config, error) {
	if node.Scheme != "amqps" {
		return nil, nil
	}
	settings := u.tls.Clone()
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: node.ServerName}
	}
	if settings.ServerName == "" {
		settings.ServerName = node.Host
	}
	if node.CACertFile != "" {
		authorities, err := os.ReadFile(node.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("read authorities: no certificate in %s", node.CACertFile)
		}
	}
	if node.CertFile != "" {
		own, err := tls.LoadX509KeyPair(node.CertFile, node.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load certificate: %w", err)
		}
		settings.Certificates = []tls.Certificate{own}
	}
	return settings, nil
}

// ShowsCertificate reports whether a node sees a certificate of the relay's: see [Config].
func (u *Upstream) ShowsCertificate() bool {
	return u.tls != nil && (len(u.tls.Certificates) > 0 || u.tls.GetClientCertificate != nil) ||
		slices.ContainsFunc(u.nodes, func(node amqp091.URI) bool { return node.CertFile != "" })
}

// each calls f for one node after the other until one serves.
func (u *Upstream) each(f func(amqp091.URI) error) error {
	var all []error
	first := int(u.next.Add(1))
	for i := range u.nodes {
		node := u.nodes[(first+i)%len(u.nodes)]
		err := f(node)
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("connect to %s:%d: %w", node.Host, node.Port, err))
	}
	return errors.Join(all...)
}
