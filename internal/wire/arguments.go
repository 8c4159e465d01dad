package wire

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/duepost/duepost/internal/amqp"
)

// arguments reads a method's arguments one after the other. After a fault every
// read returns a zero value; end reports the fault.
type arguments struct {
	rest   []byte
	cutOff bool
	err    error // a fault other than cutOff, without class and method
}

// take returns the next n octets, or nil if there are not that many.
func (a *arguments) take(n int) []byte {
	if a.cutOff || len(a.rest) < n {
		a.cutOff = true
		return nil
	}
	b := a.rest[:n]
	a.rest = a.rest[n:]
	return b
}

func (a *arguments) octet() uint8 {
	if b := a.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (a *arguments) short() uint16 {
	if b := a.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (a *arguments) long() uint32 {
	if b := a.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (a *arguments) longLong() uint64 {
	if b := a.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bits reads one octet of at most eight flags, the first in the lowest bit.
// [amqp 4.2.5.2]
func (a *arguments) bits(flags ...*bool) {
	b := a.octet()
	for i, f := range flags {
		*f = b&(1<<i) != 0
	}
}

// shortView reads a short string as a view, which may hold any octets.
func (a *arguments) shortView() []byte {
	if a.cutOff {
		return nil
	}
	s, rest, ok := amqp.CutShortStr(a.rest)
	if !ok {
		a.cutOff = true
		return nil
	}
	a.rest = rest
	return s
}

// shortStr reads a short string as a copy. It must be UTF-8, which RabbitMQ
// checks for methods without content, too.
func (a *arguments) shortStr() string {
	s := a.shortView()
	if !utf8.Valid(s) && a.err == nil {
		a.err = amqp.Errorf(amqp.FrameError, "Malformed UTF-8 in shortstr")
	}
	return string(s)
}

func (a *arguments) longView() []byte {
	if a.cutOff {
		return nil
	}
	s, rest, ok := amqp.CutLongStr(a.rest)
	if !ok {
		a.cutOff = true
		return nil
	}
	a.rest = rest
	return s
}

func (a *arguments) longStr() string { return string(a.longView()) }

func (a *arguments) skipShortStr() { a.shortView() }

func (a *arguments) skipLongStr() { a.longView() }

// table reads a table as a validated view.
func (a *arguments) table() amqp.RawTable {
	t := amqp.RawTable(a.longView())
	if err := t.Validate(); err != nil && a.err == nil {
		a.err = err
	}
	return t
}

// end returns the first fault, or that octets are left over, as the error of
// the method with that id.
func (a *arguments) end(id MethodID) error {
	if !a.cutOff && a.err == nil && len(a.rest) == 0 {
		return nil
	}
	return a.failure(id)
}

func (a *arguments) failure(id MethodID) error {
	e := &amqp.Error{Code: amqp.FrameError}
	switch {
	case errors.As(a.err, &e):
	case a.cutOff:
		e.Text = "arguments of " + id.String() + " are cut off"
	default:
		e.Text = "octets follow the last argument of " + id.String()
	}
	e.Class, e.Method = id.Class(), id.Method()
	return e
}

// decodeNone checks that a method without arguments has none.
func decodeNone(src []byte, id MethodID) error {
	a := arguments{rest: src}
	return a.end(id)
}

// packBits packs at most eight flags into an octet, the first into the lowest
// bit.
func packBits(flags ...bool) byte {
	var b byte
	for i, f := range flags {
		if f {
			b |= 1 << i
		}
	}
	return b
}
