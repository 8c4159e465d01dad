package server

import (
	"testing"

	"github.com/duepost/duepost/internal/wire"
)

// A publish that lies in the read buffer is used where it lies.
func TestWholeBodyIsNotCopied(t *testing.T) {
	t.Parallel()
	var p content
	frame := []byte("whole")
	for range 2 {
		beginPublish(t, &p, uint64(len(frame)))
		body, complete, err := p.part(frame)
		if err != nil || !complete || &body[0] != &frame[0] {
			t.Fatalf("part = %q, %v, %v, want a view of the frame", body, complete, err)
		}
		p.reset()
	}
}

// A channel grows with what has come and not with what was announced, and keeps
// nothing of a large message.
func TestLargeBodyIsGivenBack(t *testing.T) {
	t.Parallel()
	var p content
	beginPublish(t, &p, 100<<20)
	if cap(p.body) > keepBody {
		t.Errorf("%d octets for a body of which nothing has come", cap(p.body))
	}
	part := make([]byte, 100<<10)
	for range 10 {
		if _, complete, err := p.part(part); complete || err != nil {
			t.Fatalf("part = %v, %v", complete, err)
		}
	}
	if cap(p.body) > 4<<20 {
		t.Errorf("%d octets for 1 MB of body", cap(p.body))
	}
	p.reset()
	if cap(p.body) > keepBody {
		t.Errorf("%d octets kept", cap(p.body))
	}
}

func beginPublish(t *testing.T, p *content, size uint64) {
	t.Helper()
	args := (&wire.BasicPublish{Exchange: []byte("x"), RoutingKey: []byte("key")}).Append(nil)
	if err := p.begin(args); err != nil {
		t.Fatal(err)
	}
	if string(p.method.Exchange) != "x" || string(p.method.RoutingKey) != "key" ||
		string(p.method.ExchangeAndKey) != "\x01x\x03key" {
		t.Fatalf("method = %+v", p.method)
	}
	header := wire.AppendContentHeader(nil, 1, wire.ClassBasic, size, []byte{0, 0})
	if complete, err := p.header(header[7:len(header)-1], 128<<20); complete || err != nil {
		t.Fatalf("header = %v, %v", complete, err)
	}
}
