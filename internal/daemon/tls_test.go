package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestTLSListener(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	var roots *x509.CertPool
	cfg.TLSCert, cfg.TLSKey, roots = certificate(t)
	cfg.AMQPAddr, cfg.AMQPSAddr = "", "127.0.0.1:0"
	d := mustStart(t, cfg)
	if d.AMQPAddr() != nil {
		t.Errorf("AMQPAddr() = %v, want nil without a plain listener", d.AMQPAddr())
	}
	conn, err := amqp.DialTLS("amqps://guest:guest@"+d.AMQPSAddr().String()+"/", &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Channel(); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	mustShutdown(t, d)
}

// certificate makes a self-signed one for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", keyBytes), roots
}
