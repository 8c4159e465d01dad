package gateway

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/wire"
)

// pieces is a connection whose reads return one piece each, and which keeps what is written.
type pieces struct {
	net.Conn // for what no test uses
	rest     [][]byte
	written  []byte
	largest  int // of what one read was offered
}

func (p *pieces) Read(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; len(p.rest[0]) == 0 {
		p.rest = p.rest[1:]
	}
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error) {
	p.written = append(p.written, b...)
	return len(b), nil
}

func (p *pieces) SetReadDeadline(time.Time) error { return nil }

// cutUp splits b into pieces of at most so many octets.
func cutUp(b []byte, most int, r *rand.Rand) (all [][]byte) {
	for len(b) > 0 {
		n := min(len(b), 1+r.IntN(most))
		all = append(all, b[:n])
		b = b[n:]
	}
	return all
}

// doubler is a sieve that repeats the payload of each header frame and passes all else.
type doubler struct{ seen int }

func (d *doubler) look(h head, id wire.MethodID) interest {
	if h.kind == wire.FrameHeader || id == wire.BasicPublishID {
		return whole
	}
	return untouched
}

func (d *doubler) replace(h head, _ wire.MethodID, frame []byte) ([]byte, bool) {
	d.seen++
	if h.kind != wire.FrameHeader {
		return nil, true
	}
	return wire.AppendFrame(nil, h.kind, h.channel, bytes.Repeat(payload(frame), 2)), false
}

func (d *doubler) resume(uint16) []byte { return nil }

func newTestPump(src, dst net.Conn, s sieve) *pump {
	return &pump{
		src: src, dst: dst, sieve: s, mail: newMailbox(src), done: make(chan struct{}),
		buffers: &sync.Pool{New: func() any { return new([busyBuffer]byte) }},
	}
}

// stream makes frames of all kinds and sizes, and what doubler makes of them.
func stream(r *rand.Rand, most int) (in, want []byte) {
	sizes := []int{0, 1, 7, 11, 300, 1100, 5000, 40_000, 200_000}
	for sizes[len(sizes)-1] > most {
		sizes = sizes[:len(sizes)-1]
	}
	for range 30 {
		size := sizes[r.IntN(len(sizes))]
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(r.IntN(256))
		}
		kind := []uint8{wire.FrameMethod, wire.FrameHeader, wire.FrameBody, wire.FrameHeartbeat}[r.IntN(4)]
		channel := uint16(r.IntN(4))
		frame := wire.AppendFrame(nil, kind, channel, content)
		in = append(in, frame...)
		if kind == wire.FrameHeader {
			frame = wire.AppendFrame(nil, kind, channel, bytes.Repeat(content, 2))
		}
		want = append(want, frame...)
		in = wire.AppendMethod(in, channel, &wire.BasicPublish{Exchange: []byte("x")})
		want = wire.AppendMethod(want, channel, &wire.BasicPublish{Exchange: []byte("x")})
	}
	return in, want
}

func TestFramesPassHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		piece := []int{1, 13, 900, 70_000}[seed%4]
		in, want := stream(r, 1000*piece)
		src, dst := &pieces{rest: cutUp(in, piece, r)}, &pieces{}
		p := newTestPump(src, dst, &doubler{})
		if err := p.run(); err != io.EOF {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(dst.written, want) {
			t.Fatalf("seed %d: got %d octets, want %d, or other ones", seed, len(dst.written), len(want))
		}
	}
}

func TestBufferFollowsWhatCame(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		frame []byte
		limit int
	}{
		{"a large body", wire.AppendFrame(nil, wire.FrameBody, 1, make([]byte, 4<<20)), busyBuffer},
		{"a header that claims much", []byte{wire.FrameHeader, 0, 1, 0, 0x0f, 0, 0, 1, 2, 3}, idleBuffer},
		{"a header too large to be seen", []byte{wire.FrameHeader, 0, 1, 0xff, 0xff, 0xff, 0xff, 1}, idleBuffer},
		{"no frame", bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 100_000), busyBuffer},
	} {
		src, dst := &pieces{rest: [][]byte{tc.frame}}, &pieces{}
		if err := newTestPump(src, dst, &doubler{}).run(); err != io.EOF {
			t.Errorf("%s: %v", tc.name, err)
		}
		if src.largest > tc.limit {
			t.Errorf("%s: a buffer of %d octets, want at most %d", tc.name, src.largest, tc.limit)
		}
	}
}

func TestLettersGoBetweenFrames(t *testing.T) {
	t.Parallel()
	client, src := net.Pipe()
	dst, broker := net.Pipe()
	p := newTestPump(src, dst, &doubler{})
	ended := make(chan error, 1)
	go func() { ended <- p.run() }()
	body := wire.AppendFrame(nil, wire.FrameBody, 1, make([]byte, 3000))
	heartbeat := wire.AppendHeartbeat(nil)
	read := func(n int) []byte {
		t.Helper()
		b := make([]byte, n)
		if _, err := io.ReadFull(broker, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	// A pump that waits for the client is woken.
	p.mail.post(letter{say: heartbeat})
	if diff := cmp.Diff(heartbeat, read(len(heartbeat))); diff != "" {
		t.Error(diff)
	}
	// Within a frame it says nothing else.
	go client.Write(body[:2000])
	got := read(2000)
	p.mail.post(letter{say: heartbeat})
	go client.Write(append(body[2000:], body...))
	got = append(got, read(2*len(body)-2000+len(heartbeat))...)
	want := append(append(bytes.Clone(body), heartbeat...), body...)
	if !bytes.Equal(got, want) {
		t.Errorf("got other octets than body, heartbeat, body")
	}
	client.Close()
	if err := <-ended; err != io.EOF {
		t.Errorf("got %v, want the end of the source", err)
	}
}

// FuzzPump feeds any octets in any pieces through both sieves of a link: what no sieve wants to
// change comes out as it went in.
func FuzzPump(f *testing.F) {
	f.Add(wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte("x"), RoutingKey: []byte("k")}), uint16(3))
	f.Add(wire.AppendContentHeader(nil, 1, 60, 10, []byte{0x20, 0, 0, 0, 0, 0}), uint16(9))
	f.Add(wire.AppendMethod(nil, 1, &wire.BasicDeliver{ConsumerTag: "t", Exchange: []byte("x.duepost")}), uint16(1))
	f.Add(wire.AppendMethod(nil, 1, &wire.BasicReturn{ReplyText: "t", Exchange: []byte("x")}), uint16(1))
	f.Add([]byte{1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 60, 0, 40}, uint16(1))
	f.Add([]byte("AMQP\x00\x01\x00\x00"), uint16(2))
	f.Fuzz(func(t *testing.T, in []byte, most uint16) {
		l := idleLink(t)
		r := rand.New(rand.NewPCG(uint64(most), uint64(len(in))))
		for name, s := range map[string]sieve{"up": l.up.sieve, "down": l.down.sieve} {
			src, dst := &pieces{rest: cutUp(in, int(most)+1, r)}, &pieces{}
			p := newTestPump(src, dst, s)
			if err := p.run(); err != io.EOF {
				t.Fatalf("%s: %v", name, err)
			}
			if src.largest > 2*mostSeen {
				t.Fatalf("%s: a buffer of %d octets", name, src.largest)
			}
			if name == "up" || bytes.Contains(in, []byte(dueSuffix)) {
				continue // may be rewritten
			}
			// What waits for its end is not passed yet; nothing else is missing or more.
			if passed := len(dst.written) + p.end - p.start; passed != len(in) || !bytes.HasPrefix(in, dst.written) {
				t.Fatalf("%s: %d octets became %d", name, len(in), passed)
			}
		}
	})
}

// plainTopology knows no delayed exchange.
type plainTopology struct{}

func (plainTopology) Attach(context.Context, string, string) error  { return nil }
func (plainTopology) Discard(context.Context, string, string) error { return nil }

func (plainTopology) IsDelayed(context.Context, string, string) (bool, error) { return false, nil }

// idleLink is a link whose pumps do not run.
func idleLink(t testing.TB) *link {
	t.Helper()
	g, err := New(Config{
		Dial:     func(context.Context) (net.Conn, error) { return nil, io.EOF },
		Topology: plainTopology{},
	})
	must(t, err)
	t.Cleanup(func() { must(t, g.Close()) })
	client, broker := net.Pipe()
	l := newLink(g, client)
	l.broker = broker
	l.up, l.down = l.newPump(client, broker), l.newPump(broker, client)
	l.up.sieve, l.down.sieve = newUpward(l), newDownward(l)
	return l
}
