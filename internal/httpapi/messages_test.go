package httpapi

import (
	"testing"
)

func TestPublishAndGet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "queues/%2F/q", `{"durable":true,"arguments":{"x-dead-letter-exchange":"amq.fanout"}}`)
	f.want(201, "", "PUT", "queues/%2F/dead", "")
	f.want(201, "", "POST", "bindings/%2F/e/amq.fanout/q/dead", "")
	const to = "exchanges/%2F/amq.default/publish"
	f.want(200, `{"routed":true}`, "POST", to, `{"properties":{},"routing_key":"q","payload":"one","payload_encoding":"string"}`)
	f.want(200, `{"routed":true}`, "POST", to, `{"properties":{"delivery_mode":2,"priority":3,"timestamp":7,"content_type":"a/b",
		"headers":{"n":1,"l":["x"]}},"routing_key":"q","payload":"AP8=","payload_encoding":"base64"}`)
	f.want(200, `{"routed":false}`, "POST", to, `{"properties":{},"routing_key":"none","payload":"","payload_encoding":"string"}`)
	for body, reason := range map[string]string{
		`{}`: "[{key_missing,routing_key},{key_missing,payload},{key_missing,payload_encoding}]",
		`{"routing_key":"q","payload":"?","payload_encoding":"base64"}`:                                      "payload: is no base64",
		`{"routing_key":"q","payload":"","payload_encoding":"hex"}`:                                          "unsupported_encoding: hex",
		`{"properties":{"expiration":"soon"},"routing_key":"q","payload":"","payload_encoding":"string"}`:    "invalid expiration 'soon'",
		`{"properties":{"priority":256},"routing_key":"q","payload":"","payload_encoding":"string"}`:         "priority: is 256, must be an integer from 0 to 255",
		`{"properties":{"user_id":"management"},"routing_key":"q","payload":"","payload_encoding":"string"}`: "user_id property set to 'management'",
	} {
		f.want(400, reason, "POST", to, body)
	}
	f.want(404, "no exchange 'none'", "POST", "exchanges/%2F/none/publish", `{"routing_key":"q","payload":"","payload_encoding":"string"}`)
	f.as("monitoring").want(401, "not_authorised", "POST", to, `{"routing_key":"q","payload":"","payload_encoding":"string"}`)

	const from = "queues/%2F/q/get"
	f.want(200, `[{"exchange":"","message_count":1,"payload":"one","payload_bytes":3,"payload_encoding":"string",`+
		`"properties":[],"redelivered":false,"routing_key":"q"}]`, "POST", from, `{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}`)
	f.want(200, `"payload":"b24=","payload_bytes":3,"payload_encoding":"base64","properties":[],"redelivered":true`,
		"POST", from, `{"count":"1","ackmode":"reject_requeue_true","encoding":"base64","truncate":2}`)
	f.want(200, `"payload":"one"`, "POST", from, `{"count":1,"ackmode":"reject_requeue_false","encoding":"auto"}`)
	f.want(200, `[{"exchange":"","message_count":0,"payload":"AP8=","payload_bytes":2,"payload_encoding":"base64","properties":`+
		`{"content_type":"a/b","delivery_mode":2,"headers":{"l":["x"],"n":1},"priority":3,"timestamp":7},"redelivered":false,"routing_key":"q"}]`,
		"POST", from, `{"count":9,"ackmode":"ack_requeue_false","encoding":"auto"}`)
	f.want(200, "[]", "POST", from, `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`)
	f.want(200, `"payload":"one"`, "POST", "queues/%2F/dead/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`)
	f.want(400, "[{key_missing,ackmode},{key_missing,count},{key_missing,encoding}]", "POST", from, `{}`)
	f.want(400, "Unsupported encoding", "POST", from, `{"count":1,"ackmode":"ack_requeue_false","encoding":"hex"}`)
	f.want(400, "Invalid ackmode value: maybe", "POST", from, `{"count":1,"ackmode":"maybe","encoding":"auto"}`)
	f.want(400, "count: is -1, must be a whole number", "POST", from, `{"count":-1,"ackmode":"ack_requeue_true","encoding":"auto"}`)
	f.want(404, "Object Not Found", "POST", "queues/%2F/none/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`)
}

func TestConsumersThatWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "queues/%2F/q", `{"arguments":{"x-single-active-consumer":true}}`)
	for _, tag := range []string{"first", "second"} {
		if _, err := f.channel("guest").Consume("q", tag, false, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	f.want(200, `"single_active_consumer_tag":"first"`, "GET", "queues/%2F/q", "")
	for _, row := range get[[]map[string]any](f, "consumers/%2F") {
		active := row["consumer_tag"] == "first"
		if row["active"] != active || row["activity_status"] != map[bool]string{true: "single_active", false: "waiting"}[active] {
			t.Errorf("consumer %v: active %v, %v", row["consumer_tag"], row["active"], row["activity_status"])
		}
	}
}
