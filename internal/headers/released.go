package headers

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
)

// AppendReleased appends the header table of a delayed message as its consumer
// will see it: XDelay and DeliveryDelay hold the negated delay as a 64-bit
// integer, whatever type was sent; with a DeliveryTime, XDelay holds the negated
// delay that resulted, and is added if it was not there. Everything else is
// byte for byte what was sent.
//
// d is what ParseDelay returned for h. The negative value is what keeps a second
// delayed exchange from delaying the message again.
func AppendReleased(dst []byte, h amqp.RawTable, d Delay) []byte {
	if !d.IsDelayed() {
		return append(dst, h...)
	}
	hasXDelay := false
	for key, v := range h.All() {
		switch {
		case string(key) == XDelay && d.shownXDelay != 0:
			hasXDelay = true
			dst = appendLong(dst, XDelay, d.shownXDelay)
		case string(key) == DeliveryDelay && d.shownDeliveryDelay != 0:
			dst = appendLong(dst, DeliveryDelay, d.shownDeliveryDelay)
		default:
			dst = amqp.AppendRawField(dst, key, v)
		}
	}
	if _, absolute := h.Lookup(DeliveryTime); absolute && !hasXDelay {
		dst = appendLong(dst, XDelay, d.shownXDelay)
	}
	return dst
}

// appendLong appends a pair with a 64-bit integer.
func appendLong(dst []byte, name string, n int64) []byte {
	var data [8]byte
	binary.BigEndian.PutUint64(data[:], uint64(n))
	return amqp.AppendRawField(dst, name, amqp.RawValue{Type: amqp.TypeInt64, Data: data[:]})
}
