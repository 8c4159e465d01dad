// Package proxy is about faults between an AMQP client and its broker, for tests: it passes
// frames on and can cut, hold and slip in.
//
// It knows where frames begin and end. It does not know what they mean, and nothing of the
// client or the broker but their sockets.
package proxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// protocolHeader is how many bytes a client sends before its first frame. [amqp 4.2.2]
const protocolHeader = 8

// Direction is who sent a frame.
type Direction int

// The directions.
const (
	FromClient Direction = iota
	FromBroker
)

// Frame is one frame as it is on the wire.
type Frame []byte

// Type is 1 for a method, 2 for a content header, 3 for a body, 8 for a heartbeat.
func (f Frame) Type() byte { return f[0] }

// Method is the class and the method of a method frame.
func (f Frame) Method() (class, method uint16) {
	return binary.BigEndian.Uint16(f[7:]), binary.BigEndian.Uint16(f[9:])
}

// Is reports whether f is that method.
func (f Frame) Is(class, method uint16) bool {
	if f.Type() != 1 {
		return false
	}
	c, m := f.Method()
	return c == class && m == method
}

// Verdict is what becomes of a frame, and of its connection.
type Verdict int

// The verdicts.
const (
	Pass Verdict = iota
	Cut          // end the connection before the frame
	Tear         // pass half of the frame, then end the connection
	Lose         // leave the frame out
)

// Proxy listens on a port of its own and connects to a broker for each client.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	ln net.Listener
	wg sync.WaitGroup

	mu     sync.Mutex
	target string                         // guarded by mu
	judge  func(Direction, Frame) Verdict // guarded by mu; nil passes
	links  map[*link]struct{}             // guarded by mu
	down   bool                           // guarded by mu; refuses clients
}

// link is one client with its broker.
type link struct {
	client, broker net.Conn
	toClient       sync.Mutex // held for each frame to the client
}

// Start runs a proxy to target until the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	p := &Proxy{Addr: ln.Addr().String(), ln: ln, target: target, links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		ln.Close()
		p.CutAll()
		p.wg.Wait()
	})
	return p
}

// To sends clients that come from now on to another broker.
func (p *Proxy) To(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Judge has f decide about each frame. It is called for one frame at a time. Nil passes all.
func (p *Proxy) Judge(f func(Direction, Frame) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = f
}

// Down cuts all connections and ends new ones at once, until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.CutAll()
}

// Up lets clients connect again.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// CutAll ends all connections.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Inject sends a frame to all clients, between two of the broker's.
func (p *Proxy) Inject(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.toClient.Lock()
		_, _ = l.client.Write(f) // a client that is gone is none of ours
		l.toClient.Unlock()
	}
}

// Method makes a method frame of channel 0. args are the encoded arguments.
func Method(class, method uint16, args ...byte) Frame {
	f := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(4+len(args)))
	f = binary.BigEndian.AppendUint16(f, class)
	f = binary.BigEndian.AppendUint16(f, method)
	return append(append(f, args...), 0xce)
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // the test is over
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target, down := p.target, p.down
	p.mu.Unlock()
	if down {
		return
	}
	broker, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	l := &link{client: client, broker: broker}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, FromClient) })
	both.Go(func() { p.pump(l, FromBroker) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// pump passes on what comes from one side, until either ends.
func (p *Proxy) pump(l *link, d Direction) {
	defer l.cut()
	from, to := l.client, l.broker
	if d == FromBroker {
		from, to = l.broker, l.client
	}
	in := bufio.NewReader(from)
	if d == FromClient {
		if _, err := io.CopyN(to, in, protocolHeader); err != nil {
			return
		}
	}
	for {
		f, err := readFrame(in)
		if err != nil {
			return
		}
		verdict := p.ask(d, f)
		switch verdict {
		case Cut:
			return
		case Lose:
			continue
		case Tear:
			f = f[:len(f)/2]
		}
		if d == FromBroker {
			l.toClient.Lock()
		}
		_, err = to.Write(f)
		if d == FromBroker {
			l.toClient.Unlock()
		}
		if err != nil || verdict == Tear {
			return
		}
	}
}

func (p *Proxy) ask(d Direction, f Frame) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.judge == nil {
		return Pass
	}
	return p.judge(d, f)
}

func readFrame(in *bufio.Reader) (Frame, error) {
	head, err := in.Peek(7)
	if err != nil {
		return nil, err
	}
	f := make(Frame, 7+int(binary.BigEndian.Uint32(head[3:]))+1)
	_, err = io.ReadFull(in, f)
	return f, err
}

func (l *link) cut() {
	l.client.Close()
	l.broker.Close()
}
