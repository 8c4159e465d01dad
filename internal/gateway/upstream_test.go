package gateway

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/duepost/duepost/duepostest"
)

func TestAnotherNodeServesWhenOneIsDown(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	down := "amqp://guest:guest@" + ln.Addr().String()
	must(t, ln.Close())
	u, err := NewUpstream([]string{down, duepostest.Start(t).URL}, nil)
	must(t, err)
	made := NewBrokered(u.Connect)
	t.Cleanup(func() { must(t, made.Close()) })
	r := serve(t, &fakeTopology{}, u.Dial)
	for range 4 {
		r.dial(t)
		is, err := made.IsDelayed(t.Context(), "/", "x")
		if is || err != nil {
			t.Errorf("got %v and %v, want false", is, err)
		}
		// What breaks is made anew.
		must(t, made.hosts["/"].conn.Close())
	}
	if _, err := made.IsDelayed(t.Context(), "nowhere", "x"); err == nil {
		t.Error("there is an answer from a virtual host that does not exist")
	}
}

func TestUpstreamWithTLSIsWhoItsURLSays(t *testing.T) {
	t.Parallel()
	server, client := testTLS(t)
	behind := newRig(t)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	must(t, err)
	go func() { _ = behind.Serve(ln) }()
	url := "amqps://guest:guest@" + ln.Addr().String() + "/"
	for _, tc := range []struct {
		settings *tls.Config
		fault    string
	}{
		{client, ""},
		{nil, "certificate"},
		{&tls.Config{RootCAs: client.RootCAs, ServerName: "elsewhere"}, "elsewhere"},
	} {
		u, err := NewUpstream([]string{url}, tc.settings)
		must(t, err)
		conn, err := u.Dial(t.Context())
		if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("got %v, want %q", err, tc.fault)
		}
		if err == nil {
			conn.Close()
		}
		own, err := u.Connect("/")
		if (err == nil) != (tc.fault == "") {
			t.Errorf("the relay's own: got %v, want %q", err, tc.fault)
		}
		if err == nil {
			own.Close()
		}
	}
}

func TestURLsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, urls := range [][]string{nil, {"http://u:secret@h/"}, {"amqp://u:sec ret@h:1/"}, {"amqp://u:secret@h:port/"}} {
		_, err := NewUpstream(urls, nil)
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec ret") {
			t.Errorf("%q: got %v, want an error without the password", urls, err)
		}
	}
}
