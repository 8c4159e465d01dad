package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duepost/duepost/internal/wire"
)

func TestSilentPeerIsCutOffAfterTwoIntervals(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(10)
		time.Sleep(20*time.Second - time.Millisecond)
		synctest.Wait()
		if n := s.Stats().Connections; n != 1 {
			t.Fatal("cut off before two intervals of silence")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := s.Stats().Connections; n != 0 {
			t.Fatal("still connected after three intervals of silence")
		}
		p.expectEnd()
		if n := s.Stats().HeartbeatsMissed; n != 1 {
			t.Errorf("HeartbeatsMissed = %d, want 1", n)
		}
	})
}

func TestHeartbeatsKeepAConnection(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(10)
		for range 100 {
			time.Sleep(10 * time.Second)
			p.write(wire.AppendHeartbeat(nil))
		}
		synctest.Wait()
		if n := s.Stats().Connections; n != 1 {
			t.Error("cut off in spite of heartbeats")
		}
		p.close()
	})
}

func TestTrafficCountsAsHeartbeat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe().open(10).channel(1)
		for range 20 {
			time.Sleep(15 * time.Second)
			p.send(1, &wire.BasicQos{})
			p.expect(1, &wire.BasicQosOk{})
		}
		p.close()
	})
}

// A client gives us up after two intervals as well, so we speak in time.
func TestServerSendsHeartbeatsWhenIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe().open(10)
		last := time.Now()
		for range 20 {
			select {
			case f := <-p.frames:
				if f.Type != wire.FrameHeartbeat || f.Channel != 0 || len(f.Payload) != 0 {
					t.Fatalf("got %+v, want a heartbeat", f)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("no heartbeat within an interval")
			}
			if pause := time.Since(last); pause < 4*time.Second {
				t.Errorf("heartbeat after %v, want at least 4 s", pause)
			}
			last = time.Now()
			p.write(wire.AppendHeartbeat(nil))
		}
	})
}

func TestNoHeartbeatsWhenTheClientWantsNone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		p := newTestServer(t).pipe().open(0)
		select {
		case f := <-p.frames:
			t.Errorf("got %+v, want silence", f)
		case <-time.After(time.Hour):
		}
		p.channel(1).close()
	})
}

// Nothing looks after a connection that is gone.
func TestWatchEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(10)
		w := &s.snapshot()[0].watch
		p.close()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.stopped || w.timer.Stop() {
			t.Error("the watch goes on")
		}
	})
}

// A client that stops in the middle of a publish is silent like any other.
func TestHalfAPublishIsCutOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(5).channel(1)
		p.send(1, &wire.BasicPublish{RoutingKey: []byte("q")})
		p.write(wire.AppendContentHeader(nil, 1, wire.ClassBasic, 100, []byte{0, 0}))
		p.write([]byte{wire.FrameBody, 0, 1, 0, 0, 0, 100, 'x'})
		p.expectEnd()
		if n := s.Stats().HeartbeatsMissed; n != 1 {
			t.Errorf("HeartbeatsMissed = %d, want 1", n)
		}
	})
}

// A client that takes nothing is cut off by the write timeout, heartbeats or
// not, and holds up nobody.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		s := newTestServer(t)
		p := s.pipe().open(0).channel(1) // its listener stops below
		p.nc.(*stoppableConn).stop()
		p.send(1, &wire.BasicQos{})
		time.Sleep(time.Minute)
		synctest.Wait()
		st := s.Stats()
		if st.Connections != 0 || st.WritesStalled != 1 {
			t.Errorf("Connections = %d, WritesStalled = %d, want 0 and 1", st.Connections, st.WritesStalled)
		}
	})
}

// stoppableConn is a connection whose Read can be made to take nothing any more.
type stoppableConn struct {
	net.Conn
	stopped chan struct{}
}

func (c *stoppableConn) stop() {
	close(c.stopped)
	_ = c.Conn.SetReadDeadline(time.Now())
}

func (c *stoppableConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.stopped:
		return 0, net.ErrClosed
	default:
		return n, err
	}
}
