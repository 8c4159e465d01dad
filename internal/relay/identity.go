package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// identity names a message from the intake. A message with a message-id has the same name each time that
// it comes out of the intake: if a relay dies after it has moved the message and before it has
// acknowledged it, both copies have it. Of two messages without one, everything may be alike
// though they are two, so the name is a new one.
func (r *Relay) identity(d amqp.Delivery) string {
	if d.MessageId == "" {
		return r.newID()
	}
	c := contentOf(d)
	sum := sha256.New()
	// Maps are printed in the order of their keys.
	fmt.Fprintf(sum, "%q %q %q %q %q %q %q %q %q %q %d %d %v %v ", d.Exchange, d.RoutingKey, d.Expiration, d.UserId,
		c.MessageId, c.CorrelationId, c.ReplyTo, c.Type, c.AppId, c.ContentType+"\n"+c.ContentEncoding,
		c.DeliveryMode, c.Priority, c.Timestamp.UnixNano(), c.Headers)
	sum.Write(c.Body)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// newID makes a name that no other message has.
func (r *Relay) newID() string { return r.name + "-" + strconv.FormatUint(r.ids.Add(1), 10) }
