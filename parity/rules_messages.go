package main

import "net/http"

// messageRules are about publishing and getting messages over HTTP.
func messageRules() []rule {
	return []rule{
		{"management: publish and get", func(p *probe) {
			q := p.channel().queue("q", nil)
			publish := func(label, exchange string, body any) {
				p.note("publish "+label, "%s", p.api(http.MethodPost, "/api/exchanges/%2F/"+exchange+"/publish", body).show())
			}
			get := func(label string, body any) {
				p.note("get "+label, "%s", p.api(http.MethodPost, "/api/queues/%2F/"+q+"/get", body).show())
			}
			message := func(more object) object {
				m := object{"properties": object{}, "routing_key": q, "payload": "text", "payload_encoding": "string"}
				for key, v := range more {
					m[key] = v
				}
				return m
			}
			publish("plain", "amq.default", message(nil))
			publish("with properties", "amq.default", message(object{"payload": "AP8=", "payload_encoding": "base64",
				"properties": object{"delivery_mode": 2, "priority": 3, "content_type": "a/b", "message_id": "i", "timestamp": 7,
					"expiration": "60000", "headers": object{"a": "b", "n": 1, "l": []any{1, "x"}}, "app_id": "app"}}))
			publish("to nobody", "amq.direct", message(nil))
			publish("to no exchange", p.name("none"), message(nil))
			publish("without a key", "amq.default", object{"properties": object{}, "payload": "text", "payload_encoding": "string"})
			publish("without anything", "amq.default", object{})
			publish("in an encoding that is none", "amq.default", message(object{"payload_encoding": "hex"}))
			publish("no base64", "amq.default", message(object{"payload": "?", "payload_encoding": "base64"}))
			publish("bad expiration", "amq.default", message(object{"properties": object{"expiration": "soon"}}))
			get("and put back", object{"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})
			get("truncated", object{"count": 1, "ackmode": "reject_requeue_true", "encoding": "base64", "truncate": 2})
			get("all", object{"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"})
			get("none", object{"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"})
			get("in an encoding that is none", object{"count": 1, "ackmode": "ack_requeue_false", "encoding": "hex"})
			get("in a way that is none", object{"count": 1, "ackmode": "maybe", "encoding": "auto"})
			get("without anything", object{})
			p.note("of no queue", "%s", p.api(http.MethodPost, "/api/queues/%2F/"+p.name("none")+"/get",
				object{"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}).show())
		}},
	}
}
