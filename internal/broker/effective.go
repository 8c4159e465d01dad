package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// effective looks values up in both places that may set them: declare arguments, whose names are
// the keys with "x-" before them, and a policy.
type effective struct {
	args   amqp.Table
	policy policy.Definition
}

// unset is a number that nothing sets.
const unset = -1

// least returns the lower of two numbers, or the one there is, else unset. A negative one means
// unlimited, which any other is below.
func (e effective) least(key string) int64 {
	n := int64(unset)
	for _, v := range [...]any{e.args["x-"+key], e.policy[key]} {
		if m, ok := amqp.AsInt(v); ok && m >= 0 && (n < 0 || m < n) {
			n = m
		}
	}
	return n
}

// has reports whether anything sets a value.
func (e effective) has(key string) bool {
	_, argument := e.args["x-"+key]
	_, policy := e.policy[key]
	return argument || policy
}

// text returns the argument, else what the policy says.
func (e effective) text(key string) (value string, ok bool) {
	if value, ok = e.args["x-"+key].(string); ok {
		return value, true
	}
	value, ok = e.policy[key].(string)
	return value, ok
}

// overflow returns the argument, else what the policy says; of a quorum queue it is the other way
// round. [rmq policies]
func (e effective) overflow() string {
	if mode, ok := e.policy["overflow"].(string); ok && e.args[argQueueType] == "quorum" {
		return mode
	}
	mode, _ := e.text("overflow")
	return mode
}
