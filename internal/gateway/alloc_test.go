package gateway

import (
	"testing"

	"github.com/duepost/duepost/internal/wire"
)

// passing is a pump of a link with one frame or more in its buffer, again and again.
func passing(t testing.TB, l *link, s sieve, frames []byte) (pass func()) {
	t.Helper()
	p := newTestPump(&pieces{}, &discard{}, s)
	p.buf = p.idle[:]
	return func() {
		p.start, p.end = 0, copy(p.buf, frames)
		if err := p.pass(); err != nil || p.start != p.end {
			t.Errorf("passed %d octets of %d: %v", p.start, p.end, err)
		}
	}
}

// discard is a connection that takes everything.
type discard struct{ pieces }

func (*discard) Write(b []byte) (int, error) { return len(b), nil }

// published is a message as a client sends it.
func published(exchange string, headers []byte) []byte {
	props := []byte{0, 0}
	if headers != nil {
		props = append([]byte{0x20, 0, 0, 0, 0, byte(len(headers))}, headers...)
	}
	b := wire.AppendMethod(nil, 1, &wire.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte("key")})
	return wire.AppendContent(b, 1, props, make([]byte, 256), 0)
}

func delivered(exchange string) []byte {
	b := wire.AppendMethod(nil, 1, &wire.BasicDeliver{ConsumerTag: "tag", Exchange: []byte(exchange)})
	return wire.AppendContent(b, 1, []byte{0, 0}, make([]byte, 256), 0)
}

// messages are what passes once per message, by name.
func messages(t testing.TB) map[string]func() {
	l := idleLink(t)
	l.gw.exchanges.note(exchangeKey{"", "delayed"}, delayed)
	l.gw.exchanges.note(exchangeKey{"", "plain"}, plain)
	delay := []byte("\x07x-delayI\x00\x00\x10\x00")
	return map[string]func(){
		"publish":           passing(t, l, l.up.sieve, published("plain", delay)),
		"publish, default":  passing(t, l, l.up.sieve, published("", nil)),
		"publish, no delay": passing(t, l, l.up.sieve, published("delayed", nil)),
		"publish, marked":   passing(t, l, l.up.sieve, published("delayed", delay)),
		"deliver":           passing(t, l, l.down.sieve, delivered("plain")),
		"deliver, renamed":  passing(t, l, l.down.sieve, delivered("delayed.duepost")),
	}
}

// Not parallel: testing.AllocsPerRun counts the whole process.
func TestNoAllocationPerMessage(t *testing.T) {
	for name, pass := range messages(t) {
		if got := testing.AllocsPerRun(200, pass); got >= 1 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	for name, pass := range messages(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pass()
			}
		})
	}
}
