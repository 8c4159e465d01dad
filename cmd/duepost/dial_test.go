package main

import (
	"net"
	"strings"
	"testing"
)

// A port where something else listens is answered soon, and with what it is.
func TestPeersThatAreNoBrokers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, scheme, says string // what the peer says to anything; empty closes without a word
		want               []string
	}{
		{"HTTP", "amqp", "HTTP/1.1 400 Bad Request\r\n\r\n", []string{`answers "HTTP/1.1 400 Bad Request", which is not AMQP`,
			"hint: is the port right?"}},
		{"AMQP 1.0", "amqp", "AMQP\x00\x01\x00\x00", []string{"another version of AMQP"}},
		{"TLS", "amqp", "\x15\x03\x01\x00\x02\x02\x46", []string{"speaks TLS", "hint: amqps://"}},
		{"no TLS", "amqps", "AMQP\x00\x00\x09\x01", []string{"another version"}},
		{"plain", "amqps", "SSH-2.0-x\r\n", []string{"does not speak TLS", "hint: amqp://"}},
		{"nothing", "amqp", "", []string{"connected, but the other side does not answer in AMQP", "hint: is the port right?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = conn.Write([]byte(tt.says))
				conn.Close()
			}()
			got := runWith(t, nil, "", "publish", "--to", "q", "--url", tt.scheme+"://guest:guest@"+ln.Addr().String()+"/", "x")
			if got.code != exitFailed {
				t.Errorf("exit code %d, want %d", got.code, exitFailed)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

// A peer that keeps silent is given up on; this waits for dialTimeout.
func TestSilentPeer(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // connects, for there is a backlog
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	got := runWith(t, nil, "", "consume", "--queue", "q", "--url", "amqp://guest:guest@"+ln.Addr().String()+"/")
	if got.code != exitFailed || !strings.Contains(got.stderr, "does not answer in AMQP") {
		t.Errorf("exit code %d, stderr:\n%s", got.code, got.stderr)
	}
}
