package broker

import (
	"encoding/binary"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
)

// deathReason is why a message was dead-lettered.
type deathReason string

// Reasons as x-death names them. [rmq dead-lettering]
const (
	rejected deathReason = "rejected"
	expired  deathReason = "expired"
	maxLen   deathReason = "maxlen"

	deliveryLimit deathReason = "delivery_limit"
)

// death is one event to be recorded in x-death.
type death struct {
	queue      string
	reason     deathReason
	seconds    int64 // unix time
	exchange   []byte
	key        []byte
	routes     headers.Routes
	expiration []byte // of the message, nil if it had none
}

// Fields of an entry of x-death.
const (
	deathCount      = "count"
	deathReasonKey  = "reason"
	deathQueue      = "queue"
	deathTime       = "time"
	deathExchange   = "exchange"
	deathKeys       = "routing-keys"
	deathExpiration = "original-expiration"
)

// appendDeath appends the headers of a message that has died once more. History is its x-death
// so far, newest first; nil if it has none or sent it itself. There is one entry for each queue
// and reason: dying there again raises the count and moves the entry to the front.
//
// Other headers stay byte for byte; CC and BCC go if the message gets another routing key.
func appendDeath(dst []byte, h amqp.RawTable, history amqp.RawValue, d *death, dropCC bool) []byte {
	_, named := h.Lookup(headers.FirstDeathReason)
	first := history.Type == 0 || !named
	var names [9]string
	without := append(names[:0], headers.XDeath,
		headers.LastDeathReason, headers.LastDeathQueue, headers.LastDeathExchange)
	if first { // sent by the publisher, if at all
		without = append(without,
			headers.FirstDeathReason, headers.FirstDeathQueue, headers.FirstDeathExchange)
	}
	if dropCC {
		without = append(without, headers.CC, headers.BCC)
	}
	dst = h.AppendWithout(dst, without...)
	dst = appendHistory(dst, history, d)
	if first {
		dst = appendString(dst, headers.FirstDeathReason, d.reason)
		dst = appendString(dst, headers.FirstDeathQueue, d.queue)
		dst = appendString(dst, headers.FirstDeathExchange, d.exchange)
	}
	dst = appendString(dst, headers.LastDeathReason, d.reason)
	dst = appendString(dst, headers.LastDeathQueue, d.queue)
	return appendString(dst, headers.LastDeathExchange, d.exchange)
}

// appendHistory appends the pair x-death.
func appendHistory(dst []byte, history amqp.RawValue, d *death) []byte {
	dst = amqp.AppendShortStr(dst, headers.XDeath)
	dst = append(dst, amqp.TypeArray)
	dst, array := openLength(dst)
	same, again := d.find(history)
	dst = append(dst, amqp.TypeTable)
	dst, table := openLength(dst)
	if again {
		dst = appendRaised(dst, same)
	} else {
		dst = d.append(dst)
	}
	closeLength(dst, table)
	for v := range history.Elements() {
		if t, ok := v.Table(); ok && !d.isAt(t) {
			dst = append(dst, amqp.TypeTable)
			dst = amqp.AppendLongStr(dst, t)
		}
	}
	closeLength(dst, array)
	return dst
}

// append appends the pairs of a first death in its queue for its reason.
func (d *death) append(dst []byte) []byte {
	dst = appendInt(dst, deathCount, amqp.TypeInt64, 1)
	dst = appendString(dst, deathReasonKey, d.reason)
	dst = appendString(dst, deathQueue, d.queue)
	dst = appendInt(dst, deathTime, amqp.TypeTimestamp, d.seconds)
	dst = appendString(dst, deathExchange, d.exchange)
	dst = amqp.AppendShortStr(dst, deathKeys)
	dst = append(dst, amqp.TypeArray)
	dst, keys := openLength(dst)
	dst = append(dst, amqp.TypeString)
	dst = amqp.AppendLongStr(dst, d.key)
	for key := range d.routes.All() {
		dst = append(dst, amqp.TypeString)
		dst = amqp.AppendLongStr(dst, key)
	}
	closeLength(dst, keys)
	if d.expiration != nil {
		dst = appendString(dst, deathExpiration, d.expiration)
	}
	return dst
}

// appendRaised appends the pairs of an entry with its count raised by one.
func appendRaised(dst []byte, entry amqp.RawTable) []byte {
	for key, v := range entry.All() {
		if n, ok := v.Int(); ok && string(key) == deathCount {
			dst = appendInt(dst, deathCount, amqp.TypeInt64, n+1)
			continue
		}
		dst = amqp.AppendRawField(dst, key, v)
	}
	return dst
}

// find returns the entry of the same queue and reason.
func (d *death) find(history amqp.RawValue) (entry amqp.RawTable, ok bool) {
	for v := range history.Elements() {
		if t, ok := v.Table(); ok && d.isAt(t) {
			return t, true
		}
	}
	return nil, false
}

func (d *death) isAt(entry amqp.RawTable) bool {
	return fieldIs(entry, deathQueue, d.queue) && fieldIs(entry, deathReasonKey, string(d.reason))
}

// isCycle reports whether a message with this history, newest first, has died in that queue
// before and never since then by being rejected: it would go round for ever.
func isCycle(history amqp.RawValue, queue string) bool {
	for v := range history.Elements() {
		t, ok := v.Table()
		if !ok || fieldIs(t, deathReasonKey, string(rejected)) {
			return false
		}
		if fieldIs(t, deathQueue, queue) {
			return true
		}
	}
	return false
}

func fieldIs(t amqp.RawTable, key, want string) bool {
	v, _ := t.Lookup(key)
	s, ok := v.Str()
	return ok && string(s) == want
}

func appendString[S ~string | ~[]byte](dst []byte, key string, value S) []byte {
	dst = amqp.AppendShortStr(dst, key)
	dst = append(dst, amqp.TypeString)
	return amqp.AppendLongStr(dst, value)
}

func appendInt(dst []byte, key string, typ byte, n int64) []byte {
	dst = amqp.AppendShortStr(dst, key)
	dst = append(dst, typ)
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

// openLength leaves room for a 32-bit length, which closeLength fills in.
func openLength(dst []byte) (grown []byte, at int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

func closeLength(dst []byte, at int) {
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
}
