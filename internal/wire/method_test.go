package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestUnknownMethods(t *testing.T) {
	t.Parallel()
	for _, id := range []MethodID{0, 60<<16 | 999, 77<<16 | 10, 10<<16 | 42, 1<<32 - 1} {
		m, err := New(id)
		var e *amqp.Error
		if m != nil || !errors.As(err, &e) || e.Code != amqp.NotImplemented ||
			e.Class != id.Class() || e.Method != id.Method() {
			t.Errorf("%v: got %v, %v; want an error with code 540 and the method", id, m, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	frame := AppendMethod(nil, 0, &QueueDeclare{Queue: "q", Durable: true})
	m, err := Parse(frame[frameStart : len(frame)-1])
	if err != nil {
		t.Fatal(err)
	}
	d, ok := m.(*QueueDeclare)
	if !ok || d.Queue != "q" || !d.Durable {
		t.Errorf("got %#v", m)
	}
	for payload, want := range map[string]string{
		"":                                     "method frame of 0 octets",
		"\x00\x3c\x00":                         "method frame of 3 octets",
		"\x00\x3c\x03\xe7":                     "unknown method 60.999",
		"\x00\x3c\x00\x50":                     "arguments of basic.ack are cut off",
		"\x00\x5a\x00\x0a\x00":                 "octets follow the last argument of tx.select",
		"\x00\x32\x00\x1e\x00\x00\x01\xff\x00": "Malformed UTF-8 in shortstr",
		"\x00\x28\x00\x0a\x00\x00\x01e\x01t\x00\x00\x00\x00\x02\x01k": "field 'k': value is missing",
	} {
		m, err := Parse([]byte(payload))
		if m != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %q in the error", payload, m, err, want)
		}
	}
}

func TestErrorOfAMethodNamesIt(t *testing.T) {
	t.Parallel()
	var m QueueBind
	args := (&QueueBind{Arguments: amqp.RawTable("\x01k!")}).Append(nil)
	var e *amqp.Error
	if err := m.Decode(args); !errors.As(err, &e) || e.Code != amqp.SyntaxError {
		t.Fatalf("got %v, want an error with code 502", err)
	}
	if e.Class != 50 || e.Method != 20 {
		t.Errorf("error names method %d.%d, want 50.20", e.Class, e.Method)
	}
}

func TestPublishKeepsTheNamesAsTheyCame(t *testing.T) {
	t.Parallel()
	var m BasicPublish
	sent := BasicPublish{Exchange: []byte("ex"), RoutingKey: []byte("a.\xff"), Mandatory: true}
	if err := m.Decode(sent.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.ExchangeAndKey), "\x02ex\x03a.\xff"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !m.Mandatory || m.Immediate {
		t.Errorf("mandatory %v, immediate %v", m.Mandatory, m.Immediate)
	}
	// Reuse must leave nothing behind.
	if err := m.Decode((&BasicPublish{}).Append(nil)); err != nil {
		t.Fatal(err)
	}
	if len(m.Exchange)+len(m.RoutingKey) != 0 || string(m.ExchangeAndKey) != "\x00\x00" ||
		m.Mandatory {
		t.Errorf("after reuse: %+v", m)
	}
}

func TestContentHeader(t *testing.T) {
	t.Parallel()
	frame := AppendContentHeader(nil, 3, ClassBasic, 1<<40, []byte("\x10\x00\x02"))
	payload := frame[frameStart : len(frame)-1]
	var h ContentHeader
	if err := h.Decode(payload); err != nil {
		t.Fatal(err)
	}
	if h.Class != 60 || h.BodySize != 1<<40 || string(h.Properties) != "\x10\x00\x02" {
		t.Errorf("got %+v", h)
	}
	for n := range headerPrefix {
		if err := h.Decode(payload[:n]); err == nil {
			t.Errorf("%d octets make a header", n)
		}
	}
	payload[3] = 1
	if err := h.Decode(payload); err == nil || !strings.Contains(err.Error(), "weight 1") {
		t.Errorf("weight 1: got %v", err)
	}
}
