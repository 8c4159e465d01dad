package duepost

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Death is why a message left a queue other than to a consumer.
type Death struct {
	// Reason is "expired", "rejected", "maxlen" or "delivery_limit".
	Reason string
	// Queue is what it left.
	Queue string
	// Count is how often it left that queue for that reason.
	Count int
	// Time is when it left for the first time, in whole seconds.
	Time time.Time
	// Exchange and RoutingKeys are how it had come into that queue.
	Exchange    string
	RoutingKeys []string
}

// Death tells how the message was dead-lettered last, and false if it was not. It tells a
// message whose time to live ended in a queue from one that was rejected. A delay is not a
// death: waiting with this client never counts, in no mode.
func (d *Delivery) Death() (Death, bool) {
	if len(d.deaths) == 0 {
		return Death{}, false
	}
	t, _ := d.deaths[0].(amqp.Table) // the newest is first
	text := func(name string) string { s, _ := t[name].(string); return s }
	count, _ := t["count"].(int64)
	at, _ := t["time"].(time.Time)
	death := Death{
		Reason: text("reason"), Queue: text("queue"), Count: int(count), Time: at, Exchange: text("exchange"),
	}
	keys, _ := t["routing-keys"].([]any)
	for _, key := range keys {
		if key, ok := key.(string); ok {
			death.RoutingKeys = append(death.RoutingKeys, key)
		}
	}
	return death, true
}

// foreignDeaths is x-death without the queues in which delayed messages wait.
func foreignDeaths(v any, plan *waitPlan) []any {
	all, _ := v.([]any)
	var deaths []any
	for _, one := range all {
		t, _ := one.(amqp.Table)
		if queue, _ := t["queue"].(string); t != nil && !plan.isOwn(queue) {
			deaths = append(deaths, one)
		}
	}
	return deaths
}
