package main

import (
	"maps"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// routing walks through the exchange types: which queues does a key reach?
func routing(s *stage) {
	s.must(s.ch.Confirm(false))
	a, b := s.queue("a", nil), s.queue("b", nil)
	queues := map[string]string{"a": a, "b": b}

	fanout := s.exchange("fanout", "fanout", nil)
	s.bind(a, "x", fanout)
	s.bind(b, "", fanout)
	s.reach(fanout, queues, map[string]string{"": "a b", "anything": "a b"})

	direct := s.exchange("direct", "direct", nil)
	s.bind(a, "info", direct)
	s.bind(a, "error", direct)
	s.bind(b, "error", direct)
	s.reach(direct, queues, map[string]string{"info": "a", "error": "a b", "errors": "", "": ""})

	topic := s.exchange("topic", "topic", nil)
	s.bind(a, "*.orange.*", topic)
	s.bind(b, "*.*.rabbit", topic)
	s.bind(b, "lazy.#", topic)
	s.reach(topic, queues, map[string]string{
		"quick.orange.rabbit": "a b", "quick.orange.fox": "a", "lazy.pink.rabbit": "b", "lazy": "b",
		"lazy.a.b.c.d": "b", "orange": "", "quick.orange.a.b": "", "..rabbit": "b", "quick.brown.fox": "",
	})

	headers := s.exchange("headers", "headers", nil)
	s.must(s.ch.QueueBind(a, "", headers, false, amqp.Table{"x-match": "all", "color": "red", "size": int32(3)}))
	s.must(s.ch.QueueBind(b, "", headers, false, amqp.Table{"x-match": "any", "color": "red", "size": int32(4)}))
	for _, m := range []struct {
		table amqp.Table
		want  string
	}{
		{amqp.Table{"color": "red", "size": int64(3)}, "a b"},
		{amqp.Table{"color": "red"}, "b"},
		{amqp.Table{"size": int32(3)}, ""},
		{nil, ""},
	} {
		s.confirmed(headers, "", amqp.Publishing{Headers: m.table})
		s.equal(s.reached(queues), m.want, "queues that headers %v reach", m.table)
	}

	s.must(s.ch.ExchangeBind(direct, "lazy.#", topic, false, nil))
	s.reach(topic, queues, map[string]string{"lazy.error": "b", "lazy.info": "b"})
	s.must(s.ch.ExchangeBind(direct, "info", topic, false, nil))
	s.reach(topic, queues, map[string]string{"info": "a"})
}

func (s *stage) reach(exchange string, queues map[string]string, want map[string]string) {
	for key, names := range want {
		s.confirmed(exchange, key, amqp.Publishing{Body: []byte(key)})
		s.equal(s.reached(queues), names, "queues that key %q reaches", key)
	}
}

// reached empties the queues and names those that held a message, once for each.
func (s *stage) reached(queues map[string]string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		for {
			_, ok, err := s.ch.Get(queues[name], true)
			s.must(err)
			if !ok {
				break
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
