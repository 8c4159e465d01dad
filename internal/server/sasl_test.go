package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestReadResponse(t *testing.T) {
	t.Parallel()
	table := func(fields amqp.Table) string {
		b, err := amqp.AppendTable(nil, fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[4:])
	}
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "orders"}}
	verified := &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{leaf},
		VerifiedChains:   [][]*x509.Certificate{{leaf}},
	}
	unverified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	for _, tt := range []struct {
		name, mechanism, response string
		state                     *tls.ConnectionState
		want                      credentials
		code                      uint16
	}{
		{name: "plain", mechanism: "PLAIN", response: "\x00guest\x00secret",
			want: credentials{user: "guest", password: "secret"}},
		{name: "plain with identity", mechanism: "PLAIN", response: "me\x00guest\x00",
			want: credentials{user: "guest"}},
		{name: "plain without NULs", mechanism: "PLAIN", response: "guest", code: amqp.SyntaxError},
		{name: "plain with too many", mechanism: "PLAIN", response: "\x00a\x00b\x00c", code: amqp.SyntaxError},
		{name: "amqplain", mechanism: "AMQPLAIN",
			response: table(amqp.Table{"LOGIN": "guest", "PASSWORD": "secret"}),
			want:     credentials{user: "guest", password: "secret"}},
		{name: "amqplain without password", mechanism: "AMQPLAIN",
			response: table(amqp.Table{"LOGIN": "guest"}), code: amqp.SyntaxError},
		{name: "amqplain with a number", mechanism: "AMQPLAIN",
			response: table(amqp.Table{"LOGIN": "guest", "PASSWORD": int32(1)}), code: amqp.SyntaxError},
		{name: "amqplain with garbage", mechanism: "AMQPLAIN", response: "\x05LOG", code: amqp.SyntaxError},
		{name: "external", mechanism: "EXTERNAL", state: verified,
			want: credentials{user: "orders", verified: true}},
		{name: "external without TLS", mechanism: "EXTERNAL", code: amqp.CommandInvalid},
		{name: "external with a certificate nobody verified", mechanism: "EXTERNAL", state: unverified,
			code: amqp.CommandInvalid},
		{name: "unknown", mechanism: "CRAM-MD5", code: amqp.CommandInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readResponse(tt.mechanism, tt.response, tt.state)
			var e *amqp.Error
			switch {
			case tt.code != 0 && (!errors.As(err, &e) || e.Code != tt.code):
				t.Errorf("err = %v, want code %d", err, tt.code)
			case tt.code == 0 && (err != nil || got != tt.want):
				t.Errorf("readResponse = %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}
