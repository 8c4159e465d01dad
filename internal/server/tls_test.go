package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/wire"
)

// certificate returns a self-signed certificate and a pool that trusts it.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secure connects a script over TLS, with a client certificate if one is given.
func (s *testServer) secure(client ...tls.Certificate) *script {
	s.t.Helper()
	serverCert, serverPool := certificate(s.t, "broker")
	cfg := &tls.Config{Certificates: []tls.Certificate{serverCert}}
	if len(client) > 0 {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
		cfg.ClientCAs = x509.NewCertPool()
		leaf, err := x509.ParseCertificate(client[0].Certificate[0])
		if err != nil {
			s.t.Fatal(err)
		}
		cfg.ClientCAs.AddCert(leaf)
	}
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeConn(tls.Server(ours, cfg))
	}()
	p := newScript(s.t, tls.Client(theirs, &tls.Config{
		ServerName: "broker", RootCAs: serverPool, Certificates: client,
	}))
	s.t.Cleanup(func() {
		theirs.Close()
		<-done
	})
	return p
}

func TestTLS(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.secure().open(0)
		if i := s.Connections()[0]; !i.TLS || i.User != "guest" {
			t.Errorf("info = %+v", i)
		}
		p.channel(1).close()
	})
}

func TestCertificateProvesTheUser(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		cert, _ := certificate(t, "guest")
		p := s.secure(cert)
		p.write([]byte(wire.ProtocolHeader))
		var start wire.ConnectionStart
		p.expect(0, &start)
		if start.Mechanisms != "EXTERNAL PLAIN AMQPLAIN" {
			t.Errorf("mechanisms = %q", start.Mechanisms)
		}
		p.send(0, &wire.ConnectionStartOk{Mechanism: "EXTERNAL"})
		p.expect(0, &wire.ConnectionTune{})
	})
}

func TestCertificateOfAnUnknownUser(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		cert, _ := certificate(t, "stranger")
		p := s.secure(cert)
		p.write([]byte(wire.ProtocolHeader))
		p.expect(0, &wire.ConnectionStart{})
		p.send(0, &wire.ConnectionStartOk{Mechanism: "EXTERNAL"})
		p.expectEnd()
		if n := s.Stats().AuthRefused; n != 1 {
			t.Errorf("AuthRefused = %d, want 1", n)
		}
	})
}

// A handshake of TLS that never comes is cut off like one of AMQP.
func TestSilentTLSClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		cert, _ := certificate(t, "broker")
		ours, theirs := net.Pipe()
		defer theirs.Close()
		s.ServeConn(tls.Server(ours, &tls.Config{Certificates: []tls.Certificate{cert}}))
		if n := s.Stats().HandshakeTimeouts; n != 1 {
			t.Errorf("HandshakeTimeouts = %d, want 1", n)
		}
	})
}
