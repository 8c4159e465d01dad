package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/duepost/duepost/internal/amqp"
)

// FuzzFrames: reading never panics, takes memory in proportion to what came,
// gives the same frames however they arrive, and they are the stream.
func FuzzFrames(f *testing.F) {
	f.Add(onePublish(10))
	f.Add(AppendHeartbeat([]byte{3, 0, 1, 0, 0, 0, 0, FrameEnd}))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Add([]byte("\x03\x00\x01\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		fast := NewReader(bytes.NewReader(stream), 0)
		slow := NewReader(iotest.OneByteReader(bytes.NewReader(stream)), 0)
		var again []byte
		for {
			a, errA := fast.Next()
			b, errB := slow.Next()
			if (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() {
				t.Fatalf("at once: %v, octet by octet: %v", errA, errB)
			}
			if errA != nil {
				checkStreamError(t, errA, stream[len(again):])
				break
			}
			if a.Type != b.Type || a.Channel != b.Channel || !bytes.Equal(a.Payload, b.Payload) {
				t.Fatalf("at once: %+v, octet by octet: %+v", a, b)
			}
			again = AppendFrame(again, a.Type, a.Channel, a.Payload)
			var h ContentHeader
			if h.Decode(a.Payload) == nil {
				var p amqp.Properties
				_ = p.Decode(h.Properties)
			}
		}
		if !bytes.HasPrefix(stream, again) {
			t.Fatalf("frames %q are not the beginning of %q", again, stream)
		}
		if n := max(len(fast.buf), len(slow.buf)); n > firstBuffer && n > 4*len(stream) {
			t.Fatalf("%d octets of buffer for %d of stream", n, len(stream))
		}
	})
}

// checkStreamError checks that an error fits the octets that were left.
func checkStreamError(t *testing.T, err error, rest []byte) {
	t.Helper()
	var e *amqp.Error
	switch {
	case err == io.EOF && len(rest) != 0, err == io.ErrUnexpectedEOF && len(rest) == 0:
		t.Fatalf("got %v with %d octets left", err, len(rest))
	case err == io.EOF, err == io.ErrUnexpectedEOF:
	case !errors.As(err, &e) || e.Code != amqp.FrameError:
		t.Fatalf("got %v, want an error with code 501", err)
	}
}

// FuzzMethods: decoding never panics, and encoding what was decoded gives
// arguments that decode to the same.
func FuzzMethods(f *testing.F) {
	for class := range uint32(100) {
		for method := range uint32(130) {
			m, err := New(MethodID(class<<16 | method))
			if err != nil {
				continue
			}
			frame := AppendMethod(nil, 0, m)
			f.Add(frame[frameStart : len(frame)-1])
		}
	}
	frame := AppendMethod(nil, 0, &QueueDeclare{Queue: "q", Arguments: amqp.RawTable("\x01kt\x01")})
	f.Add(frame[frameStart : len(frame)-1])
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := Parse(payload)
		if err != nil {
			var e *amqp.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %T, want an *amqp.Error", err)
			}
			return
		}
		once := AppendMethod(nil, 0, m)
		again, err := Parse(once[frameStart : len(once)-1])
		if err != nil {
			t.Fatalf("decode again: %v", err)
		}
		if twice := AppendMethod(nil, 0, again); !bytes.Equal(once, twice) {
			t.Fatalf("once %q, twice %q", once, twice)
		}
		// Reserved arguments and spare bits are the only freedom there is.
		if len(once)-FrameOverhead > len(payload) {
			t.Fatalf("%d octets became %d", len(payload), len(once)-FrameOverhead)
		}
	})
}
