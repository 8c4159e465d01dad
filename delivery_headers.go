package duepost

import (
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// readHeaders takes out of t what brokers and this client have added and keeps the rest as the
// headers of d. t is not used by anybody else.
func (d *Delivery) readHeaders(t amqp.Table, plan *waitPlan) {
	_, isDelayed := t[headerDue]
	if to, ok := t[headerTo].(string); ok {
		d.Exchange = to // unless a header of a retry says where it went at first
	}
	for name, v := range t {
		switch {
		case strings.HasPrefix(name, ownHeader):
			d.readOwn(name, v)
		case name == "x-death":
			d.deaths = append(foreignDeaths(v, plan), d.deaths...)
		case name == delayKey:
			d.Key, _ = v.(string)
		case isDelayed && (name == xDelay || name == deliveryTime):
		case strings.HasPrefix(name, "x-first-death-"), strings.HasPrefix(name, "x-last-death-"):
		case name == "x-delivery-count", name == "x-acquired-count":
		default:
			continue
		}
		delete(t, name)
	}
	if len(t) > 0 {
		d.Headers = t
	}
}

// readOwn reads a header of this client's.
func (d *Delivery) readOwn(name string, v any) {
	text, _ := v.(string)
	number, _ := v.(int64)
	switch name {
	case headerDue:
		d.Due = time.UnixMilli(number)
	case headerExchange:
		d.Exchange = text
	case headerRouting:
		d.RoutingKey = text
	case headerKey:
		d.Key = text
	case headerAttempts:
		d.Attempt = int(number) + 1
	case headerDeath:
		list, _ := v.([]any)
		d.deaths = append(d.deaths, list...)
	case headerParkedReason:
		d.isParked, d.parked.Reason = true, text
	case headerParkedAttempts:
		d.parked.Attempts = int(number)
	case headerParkedQueue:
		d.parked.Queue = text
	case headerParkedTime:
		d.parked.Time = time.UnixMilli(number)
	}
}

// expirationOf reads the property of that name.
func expirationOf(text string) time.Duration {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return millisDuration(ms)
}
