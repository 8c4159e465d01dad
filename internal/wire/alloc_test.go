package wire

import (
	"bytes"
	"io"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

// onePublish returns the frames of a publish as clients send it.
func onePublish(bodySize int) []byte {
	p := amqp.Properties{
		Flags:        amqp.FlagDeliveryMode | amqp.FlagContentType | amqp.FlagMessageID,
		DeliveryMode: amqp.Persistent,
		ContentType:  []byte("application/json"),
		MessageID:    []byte("0b3e1b0a-5d2c-4b8e-9a38-6d5f2f1f9a11"),
	}
	dst := AppendMethod(nil, 1, &BasicPublish{
		Exchange: []byte("orders"), RoutingKey: []byte("order.placed"),
	})
	return AppendContent(dst, 1, p.Append(nil), make([]byte, bodySize), 128<<10)
}

// endless repeats a stream for ever.
type endless struct {
	stream []byte
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], e.stream[e.at:])
		n += c
		e.at = (e.at + c) % len(e.stream)
	}
	return n, nil
}

// publishDecoder decodes publishes the way a connection does.
type publishDecoder struct {
	reader  *Reader
	publish BasicPublish
	header  ContentHeader
	props   amqp.Properties
}

// one decodes the three frames of one publish.
func (d *publishDecoder) one() (body []byte, err error) {
	f, err := d.reader.Next()
	if err != nil {
		return nil, err
	}
	id, args, err := CutMethodID(f.Payload)
	if err != nil || id != BasicPublishID {
		return nil, io.ErrUnexpectedEOF
	}
	if err := d.publish.Decode(args); err != nil {
		return nil, err
	}
	if f, err = d.reader.Next(); err != nil {
		return nil, err
	}
	if err := d.header.Decode(f.Payload); err != nil {
		return nil, err
	}
	if err := d.props.Decode(d.header.Properties); err != nil {
		return nil, err
	}
	f, err = d.reader.Next()
	return f.Payload, err
}

// Not parallel: testing.AllocsPerRun counts the whole process.
func TestNoAllocationPerMessage(t *testing.T) {
	d := publishDecoder{reader: NewReader(&endless{stream: onePublish(256)}, 128<<10)}
	for range 2000 { // until the buffer has its size
		if _, err := d.one(); err != nil {
			t.Fatal(err)
		}
	}
	if got := testing.AllocsPerRun(1000, func() {
		if body, err := d.one(); err != nil || len(body) != 256 {
			t.Fatalf("body of %d octets, %v", len(body), err)
		}
	}); got != 0 {
		t.Errorf("decode publish: %v allocations, want 0", got)
	}

	names, props := []byte("\x06orders\x0corder.placed"), []byte("\x10\x00\x02")
	body := make([]byte, 256)
	buf := make([]byte, 0, 4096)
	var ack BasicAck
	ackArgs := (&BasicAck{DeliveryTag: 7}).Append(nil)
	for name, run := range map[string]func(){
		"append deliver": func() {
			buf = AppendDeliver(buf[:0], 1, "ctag", 1, false, names, props, body, 128<<10)
		},
		"append ack": func() { buf = AppendAck(buf[:0], 1, 1, true) },
		"decode ack": func() {
			if err := ack.Decode(ackArgs); err != nil {
				t.Error(err)
			}
		},
	} {
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

func BenchmarkDecodePublish(b *testing.B) {
	for _, tc := range []struct {
		name string
		size int
	}{{"256", 256}, {"4096", 4096}} {
		b.Run(tc.name, func(b *testing.B) {
			d := publishDecoder{reader: NewReader(&endless{stream: onePublish(tc.size)}, 128<<10)}
			b.ReportAllocs()
			b.SetBytes(int64(len(onePublish(tc.size))))
			for b.Loop() {
				if _, err := d.one(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendDeliver(b *testing.B) {
	for _, tc := range []struct {
		name string
		size int
	}{{"256", 256}, {"4096", 4096}} {
		b.Run(tc.name, func(b *testing.B) {
			names, props := []byte("\x06orders\x0corder.placed"), []byte("\x10\x00\x02")
			body := bytes.Repeat([]byte{'x'}, tc.size)
			buf := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				if len(buf) > 48<<10 {
					buf = buf[:0]
				}
				buf = AppendDeliver(buf, 1, "ctag-1", 1<<33, false, names, props, body, 128<<10)
			}
			b.SetBytes(int64(tc.size))
		})
	}
}
