package headers

import (
	"iter"

	"github.com/duepost/duepost/internal/amqp"
)

// Routes are the further routing keys of a message: views of its headers. The
// zero value has none. [rmq sender-selected]
type Routes struct {
	cc, bcc amqp.RawValue
}

// ParseRoutes reads CC and BCC, which must be arrays; if not, the error is an
// *amqp.Error with code PreconditionFailed. h was validated.
func ParseRoutes(h amqp.RawTable) (Routes, error) {
	var r Routes
	for key, v := range h.All() {
		switch string(key) {
		case CC:
			if r.cc.Type == 0 {
				r.cc = v
			}
		case BCC:
			if r.bcc.Type == 0 {
				r.bcc = v
			}
		}
	}
	if err := checkRoutes(CC, r.cc); err != nil {
		return Routes{}, err
	}
	return r, checkRoutes(BCC, r.bcc)
}

func checkRoutes(name string, v amqp.RawValue) error {
	if v.Type == 0 || v.Type == amqp.TypeArray {
		return nil
	}
	return amqp.Errorf(amqp.PreconditionFailed,
		"invalid message: header '%s' has type %s, allowed is an array of long strings",
		name, amqp.TypeName(v.Type))
}

// IsEmpty reports whether the message has neither header.
func (r Routes) IsEmpty() bool { return r.cc.Type == 0 && r.bcc.Type == 0 }

// HasBCC reports whether there is a BCC header to remove before anybody sees
// the message.
func (r Routes) HasBCC() bool { return r.bcc.Type != 0 }

// WithoutBCC returns the keys that everybody may see.
func (r Routes) WithoutBCC() Routes { return Routes{cc: r.cc} }

// All iterates over the keys of CC and then of BCC. What is no long string is
// passed over, as in RabbitMQ.
func (r Routes) All() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for v := range r.cc.Elements() {
			if key, ok := v.Str(); ok && !yield(key) {
				return
			}
		}
		for v := range r.bcc.Elements() {
			if key, ok := v.Str(); ok && !yield(key) {
				return
			}
		}
	}
}
