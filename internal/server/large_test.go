package server

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
	"github.com/duepost/duepost/internal/wire"
)

// bodyGate is a disk on which large bodies are not written before it is opened.
type bodyGate struct {
	store.FS
	arrived chan struct{}
	open    chan struct{}
}

func (g *bodyGate) Create(name string, size int64) (store.File, error) {
	f, err := g.FS.Create(name, size)
	if err == nil && strings.HasPrefix(filepath.Base(name), "body-") {
		f = &gatedFile{f, g}
	}
	return f, err
}

type gatedFile struct {
	store.File
	gate *bodyGate
}

func (f *gatedFile) Datasync() error {
	f.gate.arrived <- struct{}{}
	<-f.gate.open
	return f.File.Datasync()
}

// publishLarge publishes a persistent message in several frames.
func (p *script) publishLarge(channel uint16, queue, body string) {
	b := wire.AppendMethod(nil, channel, &wire.BasicPublish{RoutingKey: []byte(queue)})
	props := persistent()
	p.write(wire.AppendContent(b, channel, props.Append(nil), []byte(body), 32<<10))
}

// TestSmallConfirmsPassALargeBody: while the disk has not taken a large body, other
// connections get their confirms; those of its own channel keep their order.
func TestSmallConfirmsPassALargeBody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		g := &bodyGate{store.OS(), make(chan struct{}, 100), make(chan struct{})}
		s := newTestServer(t, func(c *Config) { c.Broker = newTestBrokerOn(t, g) })
		slow, quick := s.pipe().open(0).channel(1), s.pipe().open(0).channel(1)
		for _, queue := range []string{"large", "small"} {
			slow.send(1, &wire.QueueDeclare{Queue: queue, Durable: true})
			slow.expect(1, &wire.QueueDeclareOk{})
		}
		slow.selectConfirms(1)
		quick.selectConfirms(1)
		body := strings.Repeat("0123456789abcdef", 64<<10)
		slow.publishLarge(1, "large", body)
		<-g.arrived
		for range 100 {
			quick.publish(1, &wire.BasicPublish{RoutingKey: []byte("small")}, persistent(), "x")
		}
		if n := quick.expectConfirms(1, 100); n != 0 {
			t.Errorf("%d negative confirms", n)
		}
		slow.expectNothing()
		close(g.open)
		slow.publish(1, &wire.BasicPublish{RoutingKey: []byte("small")}, persistent(), "behind")
		if n := slow.expectConfirms(1, 2); n != 0 {
			t.Errorf("%d negative confirms", n)
		}
		slow.get(1, "large", body)
	})
}

// BenchmarkConfirmBesideLarge measures how long one small message at a time waits
// for its confirm, alone and while another connection publishes 64 MiB bodies.
func BenchmarkConfirmBesideLarge(b *testing.B) {
	for _, large := range []bool{false, true} {
		name := "alone"
		if large {
			name = "beside64MiB"
		}
		b.Run(name, func(b *testing.B) {
			addr := benchServer(b)
			c := dialRaw(b, addr)
			c.call(&wire.QueueDeclare{Queue: "small", Durable: true, Arguments: keepOne(b)}, wire.QueueDeclareOkID)
			c.call(&wire.ConfirmSelect{}, wire.ConfirmSelectOkID)
			done, ended := make(chan struct{}), make(chan int)
			if large {
				go publishLargeUntil(b, addr, done, ended)
			}
			one := publishes(1, "small", persistent())
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				c.write(one)
				c.await(wire.BasicAckID)
				took = append(took, time.Since(start))
			}
			close(done)
			if large {
				b.ReportMetric(float64(<-ended)*64/b.Elapsed().Seconds(), "large-MiB/s")
			}
			slices.Sort(took)
			for _, q := range []struct {
				name string
				at   float64
			}{{"p50-ms", 0.5}, {"p99-ms", 0.99}, {"max-ms", 1}} {
				at := took[min(len(took)-1, int(q.at*float64(len(took))))]
				b.ReportMetric(float64(at.Microseconds())/1000, q.name)
			}
		})
	}
}

// keepOne are arguments of a queue that keeps its newest message only.
func keepOne(b *testing.B) []byte {
	args, err := amqp.AppendTable(nil, amqp.Table{"x-max-length": int32(1)})
	if err != nil {
		b.Fatal(err)
	}
	return args[4:]
}

// publishLargeUntil publishes one 64 MiB body after the other and waits for each
// confirm. It sends how many there were.
func publishLargeUntil(b *testing.B, addr string, done <-chan struct{}, ended chan<- int) {
	n := 0
	defer func() { ended <- n }()
	c := dialRaw(b, addr)
	c.call(&wire.QueueDeclare{Queue: "large", Durable: true, Arguments: keepOne(b)}, wire.QueueDeclareOkID)
	c.call(&wire.ConfirmSelect{}, wire.ConfirmSelectOkID)
	props := persistent()
	msg := wire.AppendMethod(nil, 1, &wire.BasicPublish{RoutingKey: []byte("large")})
	msg = wire.AppendContent(msg, 1, props.Append(nil), make([]byte, 64<<20), 128<<10)
	for {
		select {
		case <-done:
			return
		default:
		}
		c.write(msg)
		c.await(wire.BasicAckID)
		n++
	}
}
