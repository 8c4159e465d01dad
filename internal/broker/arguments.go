package broker

import (
	"fmt"
	"iter"
	"slices"

	"github.com/duepost/duepost/internal/amqp"
)

// Arguments of queue.declare and basic.consume that are checked. Which of them have no effect
// yet is in docs/SEMANTICS.md. Others are kept and passed over, as in RabbitMQ.
const (
	argTTL           = "x-message-ttl"
	argExpires       = "x-expires"
	argDLX           = "x-dead-letter-exchange"
	argDLXKey        = "x-dead-letter-routing-key"
	argDLXStrategy   = "x-dead-letter-strategy"
	argDLXUnroutable = "x-dead-letter-unroutable"
	argMaxLength     = "x-max-length"
	argMaxBytes      = "x-max-length-bytes"
	argOverflow      = "x-overflow"
	argMaxPriority   = "x-max-priority"
	argQueueType     = "x-queue-type"
	argQueueMode     = "x-queue-mode"
	argQueueVersion  = "x-queue-version"
	argSingleActive  = "x-single-active-consumer"
	argDeliveryLimit = "x-delivery-limit"
	argTimeout       = "x-consumer-timeout"
	argPriority      = "x-priority"

	argDelayedRetry    = "x-delayed-retry-type"
	argDelayedRetryMin = "x-delayed-retry-min"
	argDelayedRetryMax = "x-delayed-retry-max"
)

// argumentCheck says what is wrong with a value, in RabbitMQ's words, or "".
type argumentCheck func(v any, args amqp.Table) string

// queueArguments are the checks of queue.declare, in the order they are made.
func queueArguments() []namedCheck {
	return []namedCheck{
		{argExpires, checkExpires},
		{argTTL, checkTTL},
		{argDLX, anything}, // checked before all others
		{argDLXKey, checkDLXKey},
		{argDLXStrategy, oneOf("invalid_dlx_strategy", "at-most-once", "at-least-once")},
		{argDLXUnroutable, oneOf("invalid_unroutable_policy", "park", "drop")},
		{argMaxLength, checkNotNegative},
		{argMaxBytes, checkNotNegative},
		{"x-max-in-memory-length", checkNotNegative},
		{"x-max-in-memory-bytes", checkNotNegative},
		{argMaxPriority, checkMaxPriority},
		{argOverflow, oneOf("invalid_overflow", "drop-head", "reject-publish", "reject-publish-dlx")},
		{argQueueMode, checkQueueMode},
		{argQueueVersion, checkQueueVersion},
		{argSingleActive, checkBool},
		{argTimeout, checkNotNegative},
		{argQueueType, checkQueueType},
		{argDeliveryLimit, checkInt},
		{argDelayedRetry, oneOf("invalid_delayed_retry_type", "disabled", "all", "failed",
			"returned")},
		{argDelayedRetryMin, checkTTL},
		{argDelayedRetryMax, checkTTL},
		{"x-quorum-initial-group-size", checkPositive},
		{"x-queue-leader-locator", oneOf("invalid_queue_locator_arg", "client-local", "balanced",
			"random", "least-leaders", "min-masters")},
	}
}

type namedCheck struct {
	name  string
	check argumentCheck
}

// queueArgumentFaults goes through what is wrong with the arguments of queue.declare, by name.
func queueArgumentFaults(name, vhost string, args amqp.Table) iter.Seq2[string, error] {
	what := nameQueue(name, vhost)
	return func(yield func(string, error) bool) {
		if dlx, ok := args[argDLX]; ok && checkString(dlx, args) != "" && !yield(argDLX, amqp.Errorf(
			amqp.PreconditionFailed, "invalid type '%s' for arg '%s' in %s", amqp.TypeNameOf(dlx), argDLX, what)) {
			return
		}
		kind, foreign := foreignArguments(args)
		for _, arg := range foreign {
			if _, ok := args[arg]; ok && !yield(arg, amqp.Errorf(amqp.PreconditionFailed,
				"invalid arg '%s' for %s of queue type %s", arg, what, kind)) {
				return
			}
		}
		for _, c := range queueArguments() {
			v, ok := args[c.name]
			if !ok || slices.Contains(foreign, c.name) {
				continue
			}
			why := c.check(v, args)
			if why != "" && !yield(c.name, amqp.Errorf(amqp.PreconditionFailed,
				"invalid arg '%s' for %s: %s", c.name, what, why)) {
				return
			}
		}
	}
}

// foreignArguments are those that mean something only to queues of another type than the
// arguments ask for, and that type by the name that texts give it.
func foreignArguments(args amqp.Table) (kind string, foreign []string) {
	foreign = []string{"x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"}
	switch args[argQueueType] {
	case "stream":
		return "", nil // it has an answer of its own
	case "quorum":
		return "rabbit_quorum_queue", append(foreign, argMaxPriority, argQueueMode,
			argQueueVersion, "x-queue-master-locator")
	}
	return "rabbit_classic_queue", append(foreign, argDeliveryLimit, argDelayedRetry,
		argDelayedRetryMin, argDelayedRetryMax, "x-max-in-memory-length", "x-max-in-memory-bytes",
		"x-quorum-initial-group-size")
}

// checkConsumerArguments validates the arguments of basic.consume.
func checkConsumerArguments(q *Queue, args amqp.Table) error {
	for _, c := range [...]namedCheck{{argPriority, checkInt}, {argTimeout, checkNotNegative}} {
		v, ok := args[c.name]
		if !ok {
			continue
		}
		if why := c.check(v, args); why != "" {
			return amqp.Errorf(amqp.PreconditionFailed, "invalid arg '%s' for %s: %s", c.name, q, why)
		}
	}
	return nil
}

// anything is what needs no check.
func anything(any, amqp.Table) string { return "" }

func checkInt(v any, _ amqp.Table) string {
	if _, ok := amqp.AsInt(v); !ok {
		return fmt.Sprintf("%q", "expected integer, got "+amqp.TypeNameOf(v))
	}
	return ""
}

func checkNotNegative(v any, args amqp.Table) string {
	if why := checkInt(v, args); why != "" {
		return why
	}
	if n, _ := amqp.AsInt(v); n < 0 {
		return fmt.Sprintf("{value_negative,%d}", n)
	}
	return ""
}

func checkPositive(v any, args amqp.Table) string {
	if why := checkNotNegative(v, args); why != "" {
		return why
	}
	if n, _ := amqp.AsInt(v); n == 0 {
		return "{value_zero,0}"
	}
	return ""
}

func checkTTL(v any, args amqp.Table) string {
	if why := checkNotNegative(v, args); why != "" {
		return why
	}
	if n, _ := amqp.AsInt(v); n > maxTTL {
		return fmt.Sprintf("{value_too_large,%d}", n)
	}
	return ""
}

func checkExpires(v any, args amqp.Table) string {
	if why := checkPositive(v, args); why != "" {
		return why
	}
	return checkTTL(v, args)
}

func checkMaxPriority(v any, args amqp.Table) string {
	if why := checkNotNegative(v, args); why != "" {
		return why
	}
	if n, _ := amqp.AsInt(v); n > 255 {
		return fmt.Sprintf("{max_value_exceeded,%d}", n)
	}
	return ""
}

func checkBool(v any, _ amqp.Table) string {
	if _, ok := v.(bool); !ok {
		return unacceptable(v)
	}
	return ""
}

func checkString(v any, _ amqp.Table) string {
	if _, ok := v.(string); !ok {
		return unacceptable(v)
	}
	return ""
}

func checkDLXKey(v any, args amqp.Table) string {
	if why := checkString(v, args); why != "" {
		return why
	}
	if _, ok := args[argDLX]; !ok {
		return "routing_key_but_no_dlx_defined"
	}
	return ""
}

func checkQueueMode(v any, args amqp.Table) string {
	if why := checkString(v, args); why != "" {
		return why
	}
	if mode := v.(string); mode != "default" && mode != "lazy" {
		return fmt.Sprintf("%q", fmt.Sprintf("unsupported queue mode '%s'", mode))
	}
	return ""
}

func checkQueueVersion(v any, args amqp.Table) string {
	if why := checkNotNegative(v, args); why != "" {
		return why
	}
	if n, _ := amqp.AsInt(v); n != 1 && n != 2 {
		return fmt.Sprintf("%q", fmt.Sprintf("unsupported queue version '%d'", n))
	}
	return ""
}

func checkQueueType(v any, args amqp.Table) string {
	if why := checkString(v, args); why != "" {
		return why
	}
	switch v.(string) {
	case "classic", "quorum", "stream": // stream has an answer of its own
		return ""
	}
	return fmt.Sprintf("%q", fmt.Sprintf("unsupported queue type '%s'", v))
}

func oneOf(why string, known ...string) argumentCheck {
	return func(v any, args amqp.Table) string {
		if why := checkString(v, args); why != "" {
			return why
		}
		if !slices.Contains(known, v.(string)) {
			return why
		}
		return ""
	}
}

func unacceptable(v any) string {
	return "{unacceptable_type," + amqp.TypeNameOf(v) + "}"
}
