package server

import (
	"context"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

const shutdownText = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"

func TestShutdownTellsClientsAndWaitsForThem(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0).channel(1)
		half := s.pipe()
		half.login()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		var m wire.ConnectionClose
		p.expect(0, &m)
		if m.ReplyCode != amqp.ConnectionForced || m.ReplyText != shutdownText {
			t.Errorf("close = %+v", m)
		}
		half.expectEnd() // in the handshake: no word
		select {
		case err := <-done:
			t.Fatalf("Shutdown = %v before the client answered", err)
		case <-time.After(time.Second):
		}
		p.send(0, &wire.ConnectionCloseOk{})
		p.expectEnd()
		if err := <-done; err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if _, ok := s.register(p.nc); ok {
			t.Error("a connection was taken after Shutdown")
		}
	})
}

func TestShutdownDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0)
		start := time.Now()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("Shutdown took %v", took)
		}
		p.expect(0, &wire.ConnectionClose{})
		p.expectEnd()
	})
}

func TestShutdownCutsOffWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0)
		p.nc.(*stoppableConn).stop() // the close method cannot even be written
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); err == nil {
			t.Error("Shutdown = nil, want the context's error")
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("Shutdown took %v, want 1 s", took)
		}
	})
}

func TestCloseIsAbrupt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0).channel(1)
		s.Close()
		p.expectEnd()
	})
}

func TestCloseConnectionByName(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0)
		if s.CloseConnection("nobody", "x") {
			t.Error("closed a connection that is not there")
		}
		if !s.CloseConnection(s.Connections()[0].Name, "Closed via management plugin") {
			t.Error("did not find the connection")
		}
		var m wire.ConnectionClose
		p.expect(0, &m)
		if m.ReplyCode != amqp.ConnectionForced || m.ReplyText != "CONNECTION_FORCED - Closed via management plugin" {
			t.Errorf("close = %+v", m)
		}
		p.send(0, &wire.ConnectionCloseOk{})
		p.expectEnd()
	})
}

// Both sides may send close at once: each answers the other's.
func TestCloseFromBothSides(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0)
		s.CloseConnection(s.Connections()[0].Name, "x")
		p.send(0, &wire.ConnectionClose{})
		p.expect(0, &wire.ConnectionClose{})
		p.expect(0, &wire.ConnectionCloseOk{})
		p.send(0, &wire.ConnectionCloseOk{})
		p.expectEnd()
	})
}

func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t, func(c *Config) { c.MaxConnections = 1 })
		first := s.pipe().open(0)
		s.pipe().expectEnd()
		if n := s.Stats().Refused; n != 1 {
			t.Errorf("Refused = %d, want 1", n)
		}
		first.close()
		synctest.Wait()
		s.pipe().open(0).close()
	})
}

// panicAuth is an authenticator with a mistake in it.
type panicAuth struct{ Authenticator }

func (panicAuth) CheckPassword(user, password string, from net.Addr) error {
	if password == "panic" {
		panic("a mistake")
	}
	return nil
}

func TestPanicClosesOneConnectionOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t, func(c *Config) { c.Authenticator = panicAuth{} })
		other := s.pipe().open(0)
		p := s.pipe()
		p.write([]byte(wire.ProtocolHeader))
		p.expect(0, &wire.ConnectionStart{})
		p.send(0, &wire.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00panic"})
		var m wire.ConnectionClose
		p.expect(0, &m)
		if m.ReplyCode != amqp.InternalError || strings.Contains(m.ReplyText, "mistake") {
			t.Errorf("close = %+v, want 541 without details", m)
		}
		p.expectEnd()
		if n := s.Stats().Panics; n != 1 {
			t.Errorf("Panics = %d, want 1", n)
		}
		other.channel(1).close()
	})
}

func TestUpdateSecret(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0)
		p.send(0, &wire.ConnectionUpdateSecret{NewSecret: "guest", Reason: "it expires"})
		p.expect(0, &wire.ConnectionUpdateSecretOk{})
		p.send(0, &wire.ConnectionUpdateSecret{NewSecret: "wrong", Reason: "it expires"})
		var m wire.ConnectionClose
		p.expect(0, &m)
		if m.ReplyCode != amqp.NotAllowed {
			t.Errorf("close = %+v, want 530", m)
		}
	})
}

func TestBlockedPublishers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		publisher := s.pipe().open(10).channel(1)
		later := s.pipe().open(0).channel(1)
		other := s.pipe().open(0).channel(1)
		publish := func(p *script) {
			p.publish(1, &wire.BasicPublish{RoutingKey: []byte("nowhere")}, amqp.Properties{}, "x")
		}
		publish(publisher)
		publisher.send(1, &wire.BasicQos{})
		publisher.expect(1, &wire.BasicQosOk{})

		s.Block("low on disk")
		var m wire.ConnectionBlocked
		publisher.expect(0, &m) // it has published: told at once
		if m.Reason != "low on disk" {
			t.Errorf("reason = %q", m.Reason)
		}
		go publish(later)
		later.expect(0, &m) // told when it wants to publish
		other.declare(1, "q")

		// What comes behind a publish is not read, silence is not held against the
		// client, and what it is owed goes on.
		go func() {
			publish(publisher)
			publisher.send(1, &wire.BasicQos{})
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if st := s.Stats(); st.Published != 1 || !st.Blocked || st.Connections != 3 {
			t.Errorf("Published = %d, Blocked = %v, Connections = %d, want 1, true, 3",
				st.Published, st.Blocked, st.Connections)
		}
		s.Unblock()
		publisher.expect(0, &wire.ConnectionUnblocked{})
		publisher.expect(1, &wire.BasicQosOk{})
		later.expect(0, &wire.ConnectionUnblocked{})
		synctest.Wait()
		if n := s.Stats().Published; n != 3 {
			t.Errorf("Published = %d, want 3", n)
		}
		for _, p := range []*script{publisher, later, other} {
			p.close()
		}
	})
}

// TestTenThousandConnections opens and drops connections at every stage of the
// handshake. It is not parallel to others, so that goroutines can be counted.
func TestTenThousandConnections(t *testing.T) { //nolint:paralleltest // counts goroutines
	s := newTestServer(t, func(c *Config) { c.Logger = nil }).listen()
	warm := s.dial().open(0)
	before := runtime.NumGoroutine()
	for range 10 {
		dropThousand(t, s)
	}
	awaitConnections(t, s, 1)
	if now := runtime.NumGoroutine(); now > before+5 {
		t.Errorf("%d goroutines, %d before", now, before)
	}
	warm.channel(1).close()
}

func dropThousand(t *testing.T, s *testServer) {
	t.Helper()
	for i := range 1000 {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 1:
			_, _ = nc.Write([]byte(wire.ProtocolHeader))
		case 2:
			b := wire.AppendMethod([]byte(wire.ProtocolHeader), 0, &wire.ConnectionStartOk{
				Mechanism: "PLAIN", Response: "\x00guest\x00guest",
			})
			_, _ = nc.Write(wire.AppendMethod(b, 0, &wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 4096})[:len(b)-3])
		}
		nc.Close()
	}
}

// awaitConnections waits until the server has no more than n connections.
func awaitConnections(t *testing.T, s *testServer, n int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for s.Stats().Connections > n {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections left", s.Stats().Connections)
		}
		runtime.Gosched()
	}
}
