package relay

import (
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	values "github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/relay/topology"
)

// headerStamp is when RabbitMQ accepted a message, in milliseconds since 1970, where its
// interceptor for it is on. [rmq message-interceptors]
const headerStamp = "timestamp_in_ms"

// arrive reads what came from the intake. A message with a bad delay is one to be parked.
func arrive(d amqp.Delivery, nowMillis int64, id string) *item {
	it := &item{
		content: contentOf(d), exchange: d.Exchange, key: d.RoutingKey, id: id,
		expiration: d.Expiration, userID: d.UserId, due: nowMillis, at: nowMillis, urgent: true,
	}
	if text, ok := d.Headers[headers.HeldExpiration].(string); ok {
		it.expiration = text
	}
	it.bcc, _ = d.Headers[headers.HeldBCC].([]any)
	it.cc, _ = d.Headers[headers.CC].([]any)
	delete(it.content.Headers, headers.CC)
	if it.expiration != "" && !isExpiration(it.expiration) {
		it.reason = fmt.Sprintf("expiration %.40q is no number of milliseconds", it.expiration)
		return it
	}
	it.readDelay(d.Headers, nowMillis)
	return it
}

// gathered lets a message that is not due yet wait for others, to go to the wheel with them. One
// that is due before never goes there.
func (it *item) gathered(nowMillis int64) *item {
	const every = int64(gather / time.Millisecond)
	if it.reason == "" && it.due > nowMillis {
		it.at = min(it.due, nowMillis-nowMillis%every+every)
	}
	return it
}

// readDelay finds when the message is due and writes the delay headers as consumers will see them:
// negated, so that no other delayed exchange delays it again.
func (it *item) readDelay(h amqp.Table, nowMillis int64) {
	table, err := delayTable(h)
	if err != nil {
		it.reason = err.Error()
		return
	}
	delay, err := headers.ParseDelay(table, accepted(h, nowMillis))
	if err != nil {
		it.reason = err.Error()
		return
	}
	if !delay.IsDelayed() {
		return // zero, negative or past: it goes on at once, as it is
	}
	it.due = delay.Due
	it.hurry(nowMillis)
	shown, err := values.RawTable(headers.AppendReleased(nil, table, delay)).Decode()
	if err != nil {
		it.reason = err.Error()
		return
	}
	for name, v := range shown {
		// What the headers say of time is scalar and has the same types in both codecs.
		it.content.Headers[name] = v
	}
}

// accepted is when the clock of a delay started, rounded up and never later than now: as the
// gateway saw it, as RabbitMQ did, or as the relay does.
func accepted(h amqp.Table, nowMillis int64) int64 {
	roundedUp := nowMillis + 1
	if at, ok := h[headers.Accepted].(int64); ok && at > 0 {
		return min(at, roundedUp)
	}
	if at, ok := h[headerStamp].(int64); ok && at > 0 {
		return min(at+1, roundedUp)
	}
	return roundedUp
}

// delayTable are the delay headers alone, in the form in which package headers reads them.
func delayTable(h amqp.Table) (values.RawTable, error) {
	found := values.Table{}
	for _, name := range []string{headers.XDelay, headers.DeliveryDelay, headers.DeliveryTime} {
		v, ok := h[name]
		if !ok {
			continue
		}
		switch v := v.(type) {
		case amqp.Table:
			found[name] = values.Table{}
		case amqp.Decimal:
			found[name] = values.Decimal{}
		case []any:
			found[name] = []any{}
		default:
			found[name] = v
		}
	}
	table, err := values.AppendTable(nil, found)
	if err != nil {
		return nil, fmt.Errorf("read delay: %w", err)
	}
	return table[4:], nil // without its length
}

// isExpiration reports whether RabbitMQ takes the text as an expiration: it closes the channel for
// others.
func isExpiration(text string) bool {
	const longest = 1<<32 - 1
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0 && n <= longest && text[0] != '+'
}

// rescued makes of a message whose expiration ended in the intake the delivery that it was there.
// What dead-lettering wrote is taken away again; what was of an earlier one stays.
func rescued(d amqp.Delivery) amqp.Delivery {
	deaths, _ := d.Headers[headers.XDeath].([]any)
	var earlier []any
	for _, one := range deaths {
		death, _ := one.(amqp.Table)
		if death["queue"] != topology.Intake {
			earlier = append(earlier, one)
			continue
		}
		if exchange, ok := death["exchange"].(string); ok {
			d.Exchange = exchange
		}
		if keys, ok := death["routing-keys"].([]any); ok && len(keys) > 0 {
			if key, ok := keys[0].(string); ok {
				d.RoutingKey = key
			}
		}
		if text, ok := death["original-expiration"].(string); ok {
			d.Expiration = text
		}
	}
	h := with(d.Headers, nil)
	delete(h, headers.XDeath)
	if len(earlier) > 0 {
		h[headers.XDeath] = earlier
	}
	for _, which := range []string{"x-first-death-", "x-last-death-"} {
		if h[which+"queue"] == topology.Intake {
			for _, name := range []string{"queue", "reason", "exchange"} {
				delete(h, which+name)
			}
		}
	}
	d.Headers = h
	return d
}
