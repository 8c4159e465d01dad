package main

// Headings of docs/SEMANTICS.md.
const (
	declaring   = "Declaring"
	timeToLive  = "Time to live"
	deadLetters = "Dead letters"
	queueLimits = "Queues and their limits"
	policies    = "Policies"
	management  = "Management API"
	protocol    = "Protocol"
)

// place is below which heading, and in which row, docs/SEMANTICS.md documents something.
type place struct{ heading, words string }

// differences are those to RabbitMQ 3.10 that docs/SEMANTICS.md documents. In some of them we do as
// 4.3 does. A line about which we do as 3.10 is none, whatever 4.3 does.
func differences() []difference {
	var all []difference
	at := func(p place, rule string, labels ...string) {
		for _, label := range labels {
			all = append(all, difference{rule, label, p.heading, p.words})
		}
	}
	deadLetterDifferences(at)
	declareDifferences(at)
	protocolDifferences(at)
	managementDifferences(at)
	return all
}

func deadLetterDifferences(at func(p place, rule string, labels ...string)) {
	headers := place{deadLetters, "order of headers"}
	for _, rule := range []string{"rejected", "nacked", "expired in the queue", "maxlen", "maxlen 0", "reject-publish-dlx",
		"expiration is taken off", "through two queues"} {
		at(headers, "dead letter: "+rule, "order", "x-last-death-exchange", "x-last-death-queue", "x-last-death-reason")
	}
	at(headers, "dead letter: through two queues", "x-death")
	at(headers, "quorum: delivery limit", "order", "x-last-death-exchange", "x-last-death-queue", "x-last-death-reason")
	at(place{deadLetters, "x-death that a publisher sent"}, "dead letter: twice in one queue", "headers that the client sent back")
	at(place{timeToLive, "when an expired message leaves"}, "ttl: a short one behind a long one", "in the queue")
	changed := place{policies, "`message-ttl` set or lowered"}
	at(changed, "policy: ttl set on a live queue", "gone", "dead letters")
	at(changed, "policy: ttl lowered on a live queue", "left")
}

func declareDifferences(at func(p place, rule string, labels ...string)) {
	arguments := place{queueLimits, "arguments of another queue type, a value of the wrong type"}
	texts := []string{`""`, `"text"`, `"drop-head"`, `"reject-publish"`, `"reject-publish-dlx"`, "int32:1", "bool:true", "void", "{}", `["text"]`}
	at(arguments, "x-dead-letter-strategy of a classic queue", append(texts, `"at-most-once"`, `"at-least-once"`)...)
	at(arguments, "x-queue-leader-locator of a classic queue", append(texts, `"client-local"`, `"balanced"`)...)
	at(arguments, "x-queue-master-locator of a classic queue", texts...)
	wrong := []string{`"1000"`, `"text"`, "bool:true", "float64:1.5", "float64:10", "void", "{}", "[int32:1]"}
	at(arguments, "x-delivery-limit of a quorum queue", wrong...)
	for _, kind := range []string{"classic", "quorum"} {
		at(arguments, "x-consumer-timeout of a "+kind+" queue", append(wrong, "int32:-1")...)
		at(place{queueLimits, "`x-queue-type` stream"}, "x-queue-type of a "+kind+" queue", `"stream"`)
	}
	at(place{queueLimits, "`x-queue-type` stream"}, "stream", "declare")
	at(place{declaring, "unknown type"}, "exchange type that is unknown", "declare")
	at(place{queueLimits, "if-empty of a quorum queue"}, "quorum: purge, delete, count", "if-empty")
	at(place{queueLimits, "global qos"}, "quorum: global qos", "consume")
	at(place{queueLimits, "exclusive consumer of a quorum queue"}, "quorum: exclusive consumer", "another")
}

func protocolDifferences(at func(p place, rule string, labels ...string)) {
	terms := place{protocol, "Erlang's terms in texts"}
	at(terms, `expiration "99999999999999999999", text 11`, "publish")
	at(terms, "CC of a wrong type", `"text"`, "int32:1", "void")
	at(terms, "headers exchange: x-match", `x-match ""`, "x-match void")
	for _, rule := range []string{"wrong end", "unknown type", "method cut short", "above frame-max", "heartbeat on a channel"} {
		at(terms, "frame: "+rule, "answer")
	}
	at(terms, "handshake: method before open", "answer")
	for _, rule := range []string{"method that is unknown", "class that is unknown", "table with an unknown type"} {
		at(place{protocol, "a frame that cannot be read"}, "frame: "+rule, "answer")
	}
	body := place{protocol, "a body longer than announced, or above the limit"}
	at(body, "frame: more body than announced", "answer")
	at(body, "frame: message above the limit", "answer")
	at(place{protocol, "a channel above channel-max"}, "frame: channel above channel-max", "answer")
	for _, rule := range []string{"unknown mechanism", "bad response", "frame-max too high", "frame-max too low",
		"channel-max too high", "frame above 4096 before tune"} {
		at(place{protocol, "a mistake before connection.open"}, "handshake: "+rule, "answer")
	}
	at(place{protocol, "headers of old drafts"}, "handshake: other protocol", `"AMQP\x01\x01\t\x01"`)
}

func managementDifferences(at func(p place, rule string, labels ...string)) {
	reasons := place{management, "reasons of errors"}
	at(place{policies, "patterns"}, "policy: mistakes", "pattern that is none")
	at(place{policies, "patterns"}, "operator policy: mistakes", "pattern that is none")
	at(place{policies, "apply-to"}, "policy: mistakes", "apply-to that is none")
	at(place{policies, "apply-to"}, "operator policy: mistakes", "apply-to that is none")
	at(place{policies, "of two versions the one that takes more"}, "operator policy: mistakes", "overflow that is none")
	at(reasons, "policy: mistakes", "unknown setting", "wrong type", "overflow that is none", "priority that is none")
	at(reasons, "management: codes", "PATCH /api/overview <nil>")
	at(reasons, "limits of a user", "nobody's")
	left := place{management, "left out"}
	at(left, "management: keys of a queue", "message_bytes_unacknowledged", "message_bytes", "memory", "exclusive_consumer_tag",
		"consumer_utilisation", "consumer_capacity", "single_active_consumer_tag", "head_message_timestamp")
	at(left, "management: values of a queue", "message_bytes", "message_bytes_unacknowledged")
	at(left, "management: an exchange", "user_who_performed_action")
}
