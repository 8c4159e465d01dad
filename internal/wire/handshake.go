package wire

import (
	"bytes"
	"fmt"
)

// HeaderError says that a connection did not begin with a protocol header this
// package speaks. The answer is ProtocolHeader and closing. [amqp 4.2.2]
type HeaderError struct {
	Got []byte // what came instead, at most eight octets; a copy
}

// Error says what came and what it looks like.
func (e *HeaderError) Error() string {
	hint := ""
	switch {
	case bytes.HasPrefix(e.Got, []byte{0x16, 0x03}):
		hint = ", which looks like TLS"
	case bytes.HasPrefix(e.Got, []byte("GET ")), bytes.HasPrefix(e.Got, []byte("POST")),
		bytes.HasPrefix(e.Got, []byte("HEAD")):
		hint = ", which looks like HTTP"
	case bytes.HasPrefix(e.Got, []byte("AMQP")):
		hint = ", another version of AMQP"
	}
	return fmt.Sprintf("read protocol header: got %q%s, expected AMQP 0-9-1", e.Got, hint)
}

// ReadProtocolHeader reads the header that precedes the first frame. The header
// of AMQP 0-9, which some old clients send, is taken for that of 0-9-1, as in
// RabbitMQ.
//
// Errors: *HeaderError, as soon as an octet differs; else as from Next.
func (r *Reader) ReadProtocolHeader() error {
	for {
		b := r.buf[r.start:r.end]
		b = b[:min(len(b), len(ProtocolHeader))]
		if !isHeader(b) {
			return &HeaderError{Got: bytes.Clone(b)}
		}
		if len(b) == len(ProtocolHeader) {
			r.start += len(b)
			return nil
		}
		if err := r.fill(len(ProtocolHeader)); err != nil {
			return err
		}
	}
}

// isHeader reports whether b is the beginning of a header we speak.
func isHeader(b []byte) bool {
	const header09 = "AMQP\x01\x01\x00\x09"
	return string(b) == ProtocolHeader[:len(b)] || string(b) == header09[:len(b)]
}
