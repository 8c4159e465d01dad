package main

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// death is what one entry of x-death must say.
type death struct {
	queue, reason, exchange, key string
	count                        int64
}

// died checks the x-death header of a message entry by entry, newest first, and
// returns the entries.
func (s *stage) died(l letter, want ...death) []amqp.Table {
	list, _ := l.Headers["x-death"].([]any)
	s.equal(len(list), len(want), "x-death entries of %q", l.Body)
	var tables []amqp.Table
	for i, w := range want {
		got, ok := list[i].(amqp.Table)
		s.check(ok, "x-death entry is a %T", list[i])
		_, ok = got["time"].(time.Time)
		s.check(ok, "x-death time is a %T", got["time"])
		s.equal(got["queue"], w.queue, "x-death queue")
		s.equal(got["reason"], w.reason, "x-death reason")
		s.equal(got["count"], w.count, "x-death count")
		s.equal(got["exchange"], w.exchange, "x-death exchange")
		s.equal(got["routing-keys"], []any{w.key}, "x-death routing-keys")
		tables = append(tables, got)
	}
	return tables
}
