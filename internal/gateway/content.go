package gateway

import (
	"encoding/binary"
	"time"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/wire"
)

// content rewrites content headers of publishes to delayed exchanges. Its buffers are reused.
type content struct {
	header     wire.ContentHeader
	properties amqp.Properties
	table      []byte
	encoded    []byte
	frame      []byte
}

// keepContent is the largest buffer that is kept for the next message.
const keepContent = 4 << 10

// wish is what a message asks of a delayed exchange.
type wish uint8

const (
	noWish  wish = iota // nothing: it goes the broker's way
	served              // it has a header that would send it to the relay, and no delay
	waiting             // to be kept: the relay's business
)

// read reads a header frame; the error is an *amqp.Error for the client. What cannot be read at
// all asks for nothing: the broker will refuse it.
func (c *content) read(frame []byte) (wish, error) {
	if c.header.Decode(payload(frame)) != nil {
		return noWish, nil
	}
	flags := c.header.Properties
	if len(flags) < 2 || binary.BigEndian.Uint16(flags)&amqp.FlagHeaders == 0 {
		return noWish, nil
	}
	if c.properties.Decode(c.header.Properties) != nil {
		return noWish, nil
	}
	if !c.asksForDelay() {
		return noWish, nil
	}
	delay, err := headers.ParseDelay(c.properties.Headers, roundUpMillis(time.Now()))
	if err != nil {
		return noWish, err
	}
	if _, absolute := c.properties.Headers.Lookup(headers.DeliveryTime); delay.Waits() || absolute {
		return waiting, nil
	}
	return served, nil
}

// asksForDelay reports whether the message has a header that sends it to the relay, as its binding
// has them.
func (c *content) asksForDelay() bool {
	for key := range c.properties.Headers.All() {
		switch string(key) {
		case headers.XDelay, headers.DeliveryDelay, headers.DeliveryTime:
			return true
		}
	}
	return false
}

// mark returns the frame that was read last with what the relay needs to know and RabbitMQ
// would take away: when it was accepted, BCC, and the expiration, which must not run while the
// message waits. If that made the frame larger than the broker accepts, the frame stays as it is.
func (c *content) mark(h head, frame []byte, frameMax uint32, s *stats) []byte {
	c.table = c.table[:0]
	for key, v := range c.properties.Headers.All() {
		switch string(key) {
		case headers.Accepted, headers.HeldBCC, headers.HeldExpiration:
			continue // a client's own word is not to be believed
		case headers.BCC:
			if v.Type == amqp.TypeArray { // anything else the broker refuses
				c.table = amqp.AppendRawField(c.table, headers.HeldBCC, v)
				continue
			}
		}
		c.table = amqp.AppendRawField(c.table, key, v)
	}
	if c.properties.Has(amqp.FlagExpiration) && canHold(c.properties.Expiration) {
		c.table = amqp.AppendRawField(c.table, headers.HeldExpiration,
			amqp.RawValue{Type: amqp.TypeString, Data: c.properties.Expiration})
		c.properties.Clear(amqp.FlagExpiration)
	}
	var accepted [8]byte
	binary.BigEndian.PutUint64(accepted[:], uint64(roundUpMillis(time.Now())))
	c.table = amqp.AppendRawField(c.table, headers.Accepted,
		amqp.RawValue{Type: amqp.TypeInt64, Data: accepted[:]})
	c.properties.SetHeaders(c.table)
	c.encoded = c.properties.Append(c.encoded[:0])
	c.frame = wire.AppendContentHeader(c.frame[:0], h.channel, c.header.Class, c.header.BodySize, c.encoded)
	marked := c.frame
	if len(frame) > keepContent {
		c.table, c.encoded, c.frame = nil, nil, nil
	}
	if frameMax > 0 && len(marked) > int(frameMax) {
		s.unmarked.Add(1)
		return frame
	}
	s.marked.Add(1)
	return marked
}

// canHold reports whether an expiration is one that the broker would accept.
func canHold(expiration []byte) bool {
	const most = 315_360_000_000 // milliseconds; RabbitMQ refuses more
	n := 0
	for _, c := range expiration {
		if c < '0' || c > '9' || n > most {
			return false
		}
		n = 10*n + int(c-'0')
	}
	return len(expiration) > 0 && n <= most
}

// roundUpMillis returns an instant in ms since 1970, rounded up, so that a delay that begins with
// it never ends early.
func roundUpMillis(t time.Time) int64 {
	return t.Add(time.Millisecond - 1).UnixMilli()
}
