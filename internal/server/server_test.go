package server

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/duepost/duepost/internal/auth"
)

// testServer is a server in front of a broker with an empty store.
type testServer struct {
	*Server
	t    *testing.T
	addr string // "" before listen
}

// newTestServer returns a server that does not listen yet. It is closed at the
// end of the test.
func newTestServer(t *testing.T, change ...func(*Config)) *testServer {
	t.Helper()
	users := auth.NewUsers("guest")
	err := users.Put(auth.Records{Users: []auth.User{{Name: "guest", Password: auth.HashPassword("guest")}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Broker:        newTestBroker(t),
		Authenticator: users,
		Logger:        testLogger(t),
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := &testServer{Server: s, t: t}
	t.Cleanup(func() { s.Close() })
	return ts
}

// listen makes the server serve a loopback port.
func (s *testServer) listen() *testServer {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	s.t.Cleanup(func() {
		s.Close()
		if err := <-done; !errors.Is(err, ErrClosed) {
			s.t.Errorf("Serve = %v, want %v", err, ErrClosed)
		}
	})
	return s
}

// pipe connects a script in memory, for tests in a bubble of synctest.
func (s *testServer) pipe() *script {
	s.t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeConn(ours)
	}()
	p := newScript(s.t, &stoppableConn{Conn: theirs, stopped: make(chan struct{})})
	s.t.Cleanup(func() {
		theirs.Close()
		<-done
	})
	return p
}

// dial connects a script over the loopback interface.
func (s *testServer) dial() *script {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	return newScript(s.t, nc)
}

// testLogger sends log lines to the test's output.
func testLogger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{tb}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type logWriter struct{ tb testing.TB }

func (w logWriter) Write(b []byte) (int, error) {
	w.tb.Log(string(b[:len(b)-1]))
	return len(b), nil
}
