package server

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
)

// Authenticator decides who may connect. Its methods return nil to let the client
// in; an error is logged and not shown to the client. They may block and are
// called concurrently.
type Authenticator interface {
	// CheckPassword says whether the password is the user's and may be used from
	// there.
	CheckPassword(user, password string, from net.Addr) error
	// CheckName says whether there is such a user and it may connect from there:
	// a verified certificate has proved the name.
	CheckName(user string, from net.Addr) error
}

// credentials are what a client says about who it is.
type credentials struct {
	user     string
	password string
	verified bool // by the client's certificate, without a password
}

// check asks the authenticator.
func (c credentials) check(a Authenticator, from net.Addr) error {
	if c.verified {
		return a.CheckName(c.user, from)
	}
	return a.CheckPassword(c.user, c.password, from)
}

// mechanisms returns what is offered to a client. [rmq access-control]
func mechanisms(state *tls.ConnectionState) string {
	if commonName(state) != "" {
		return "EXTERNAL PLAIN AMQPLAIN"
	}
	return "PLAIN AMQPLAIN"
}

// commonName returns the name in the client's verified certificate.
func commonName(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 {
		return ""
	}
	return state.PeerCertificates[0].Subject.CommonName
}

// readResponse reads what a client responded. The error is the client's.
func readResponse(mechanism, response string, state *tls.ConnectionState) (c credentials, err error) {
	switch mechanism {
	case "PLAIN":
		c.user, c.password, err = plain(response)
		return c, err
	case "AMQPLAIN":
		c.user, c.password, err = amqplain(response)
		return c, err
	case "EXTERNAL":
		if name := commonName(state); name != "" {
			return credentials{user: name, verified: true}, nil
		}
		return c, amqp.Errorf(amqp.CommandInvalid, "invalid authentication mechanism '%s'", mechanism)
	}
	return c, amqp.Errorf(amqp.CommandInvalid, "unknown authentication mechanism '%s'", mechanism)
}

// plain reads the response of PLAIN: authorization identity, which nobody looks
// at, user and password, between NULs. [rfc4616]
func plain(response string) (user, password string, err error) {
	parts := strings.Split(response, "\x00")
	if len(parts) != 3 {
		return "", "", amqp.Errorf(amqp.SyntaxError, "response of PLAIN is not identity, user and password")
	}
	return parts[1], parts[2], nil
}

// amqplain reads the response of AMQPLAIN: the pairs of a table without its
// length.
func amqplain(response string) (user, password string, err error) {
	table := amqp.RawTable(response)
	if err := table.Validate(); err != nil {
		var e *amqp.Error
		if errors.As(err, &e) {
			return "", "", err
		}
		return "", "", amqp.Errorf(amqp.SyntaxError, "response of AMQPLAIN is not a table")
	}
	user, ok1 := lookupString(table, "LOGIN")
	password, ok2 := lookupString(table, "PASSWORD")
	if !ok1 || !ok2 {
		return "", "", amqp.Errorf(amqp.SyntaxError, "response of AMQPLAIN has no LOGIN or PASSWORD")
	}
	return user, password, nil
}

func lookupString(t amqp.RawTable, key string) (string, bool) {
	v, ok := t.Lookup(key)
	if !ok {
		return "", false
	}
	s, ok := v.Str()
	return string(s), ok
}
