package main

// Headings of docs/SEMANTICS.md.
const (
	declaring   = "Declaring"
	timeToLive  = "Time to live"
	deadLetters = "Dead letters"
	queueLimits = "Queues and their limits"
	policies    = "Policies"
	management  = "Management API"
	keysLeftOut = "Keys left out"
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
	at(reasons, "management: publish and get", "publish to no exchange", "publish without anything",
		"publish in an encoding that is none", "publish no base64", "publish bad expiration", "get in a way that is none", "of no queue")
	ofQueue := place{keysLeftOut, "a queue"}
	at(ofQueue, "management: keys of a queue", "message_bytes_unacknowledged", "message_bytes", "memory",
		"consumer_utilisation", "consumer_capacity", "head_message_timestamp")
	at(ofQueue, "management: values of a queue", "message_bytes", "message_bytes_unacknowledged")
	at(place{keysLeftOut, "an exchange"}, "management: an exchange", "user_who_performed_action")
	keyDifferences(at)
}

// keyDifferences are keys that docs/SEMANTICS.md says are left out. Many come with statistics, and
// which of those RabbitMQ has when it is asked is a matter of luck.
func keyDifferences(at func(p place, rule string, labels ...string)) {
	for _, rule := range []string{"keys: a queue", "keys: a queue of the list"} {
		at(place{keysLeftOut, "a queue"}, rule, "backing_queue_status*", "consumer_capacity*", "consumer_utilisation*",
			"garbage_collection*", "head_message_timestamp*", "idle_since*", "memory*", "message_bytes*", "message_bytes_paged_out*",
			"message_bytes_persistent*", "message_bytes_ram*", "message_bytes_unacknowledged*", "message_stats*", "messages_paged_out*",
			"messages_persistent*", "messages_ram*", "messages_ready_ram*", "messages_unacknowledged_ram*", "recoverable_slaves*",
			"reductions*", "messages_details*", "messages_ready_details*", "messages_unacknowledged_details*")
	}
	at(place{keysLeftOut, "an exchange"}, "keys: an exchange", "message_stats*", "user_who_performed_action*")
	at(place{keysLeftOut, "a connection"}, "keys: a connection", "garbage_collection*", "peer_cert*", "ssl_*", "recv_cnt*", "send_cnt*",
		"reductions*", "recv_oct_details*", "send_oct_details*")
	at(place{keysLeftOut, "a channel"}, "keys: a channel", "acks_uncommitted*", "deliveries*", "publishes*", "garbage_collection*",
		"idle_since*", "message_stats*", "messages_uncommitted*", "messages_unconfirmed*", "pending_raft_commands*", "reductions*")
	at(place{keysLeftOut, "the overview"}, "keys: the overview", "sample_retention_policies*", "queue_totals.*", "churn_rates.*",
		"message_stats.*", "release_series_support_status*")
	at(place{keysLeftOut, "a node"}, "keys: a node", "auth_mechanisms*", "channel_*", "cluster_links*", "config_files*", "connection_*",
		"context_switches*", "db_dir*", "disk_free*", "enabled_plugins*", "fd_*", "gc_*", "io_*", "log_files*", "mem_calculation_strategy*",
		"mem_limit*", "mem_used_details*", "metrics_gc_queue_length*", "mnesia_*", "msg_store_*", "net_ticktime*", "proc_*", "queue_*",
		"ra_open_file_metrics*", "run_queue*", "sockets_total*", "sockets_used_details*")
	at(place{keysLeftOut, "a virtual host"}, "keys: a virtual host", "message_stats*", "messages_details*", "messages_ready_details*",
		"messages_unacknowledged_details*", "recv_oct*", "send_oct*")
}
