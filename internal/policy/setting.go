package policy

import (
	"regexp"
	"slices"
)

// setting is what is known of one key of a definition.
type setting struct {
	name   string
	fault  string // what is said behind a value that does not do
	valid  func(v any) bool
	merge  func(user, operator any) any // nil if operator policies cannot have it
	lacked Kind                         // kinds of queues that do not have it
}

// settings are the keys that RabbitMQ knows, those of mirroring aside, which are in mirroring.go.
// Many mean nothing here, as docs/SEMANTICS.md says, but a policy with a setting that a kind of
// queue does not have does not apply to queues of that kind. [rmq policies]
func settings() []setting {
	return []setting{
		{name: "alternate-exchange", fault: "is not a valid alternate exchange name", valid: isString},
		{name: "consumer-disconnected-timeout", fault: "is not a valid consumer disconnected timeout", valid: atLeast(0)},
		{name: "consumer-timeout", fault: "is not a valid consumer timeout", valid: atLeast(0)},
		{name: "dead-letter-exchange", fault: "is not a valid dead letter exchange name", valid: isString},
		{name: "dead-letter-routing-key", fault: "is not a valid dead letter routing key", valid: isString},
		{name: "dead-letter-strategy", fault: "is not a valid dead letter strategy",
			valid: among("at-most-once", "at-least-once"), lacked: ClassicQueue},
		{name: "delayed-retry-max", fault: "is not a valid delayed retry maximum delay. Must be a positive integer",
			valid: atLeast(1), merge: lesser},
		{name: "delayed-retry-min", fault: "is not a valid delayed retry minimum delay. Must be a positive integer",
			valid: atLeast(1), merge: greater},
		{name: "delayed-retry-type",
			fault: "is not a valid delayed retry type. Must be one of: all, failed, returned, disabled",
			valid: among("all", "failed", "returned", "disabled"), merge: operators},
		{name: "delivery-limit", fault: "is not a valid delivery limit", valid: isInt,
			merge: lesserLimit, lacked: ClassicQueue},
		{name: "expires", fault: "is not a valid queue expiry", valid: atLeast(1), merge: lesser},
		{name: "initial-cluster-size", fault: "is not a valid cluster size", valid: atLeast(0),
			lacked: ClassicQueue | QuorumQueue},
		{name: "max-age", fault: "is not a valid max age", valid: isMaxAge, lacked: ClassicQueue | QuorumQueue},
		{name: "max-in-memory-bytes", fault: "is not a valid maximum memory in bytes", valid: atLeast(0), merge: lesser},
		{name: "max-in-memory-length", fault: "is not a valid maximum memory in bytes", valid: atLeast(0), merge: lesser},
		{name: "max-length", fault: "is not a valid maximum length", valid: atLeast(0), merge: lesser},
		{name: "max-length-bytes", fault: "is not a valid maximum length in bytes", valid: atLeast(0), merge: lesser},
		{name: "member-placement-tag",
			fault: "is not a valid member-placement-tag value. Must be a non-empty string",
			valid: func(v any) bool { return isString(v) && v != "" }, merge: operators, lacked: ClassicQueue},
		{name: "message-ttl", fault: "is not a valid message TTL", valid: atLeast(0), merge: lesser},
		{name: "overflow", fault: "is not a valid overflow value",
			valid: among("drop-head", "reject-publish", "reject-publish-dlx"), merge: operators},
		{name: "queue-leader-locator", fault: "is not a valid queue leader locator value",
			valid: among("client-local", "balanced", "random", "least-leaders")},
		{name: "queue-master-locator", fault: "invalid queue-master-locator value",
			valid: among("client-local", "min-masters", "random"), merge: operators, lacked: QuorumQueue},
		{name: "queue-mode", fault: "is not a valid queue-mode value", valid: among("default", "lazy"),
			lacked: QuorumQueue},
		{name: "queue-version", fault: "is not a valid queue-version value", valid: isQueueVersion, merge: operators},
		{name: "stream-filter-size-bytes", fault: "is not a valid filter size. Valid range is 16-255",
			valid:  func(v any) bool { n, ok := v.(int64); return ok && 16 <= n && n <= 255 },
			lacked: ClassicQueue | QuorumQueue},
		{name: "stream-max-segment-size-bytes", fault: "is not a valid segment size", valid: atLeast(0),
			lacked: ClassicQueue | QuorumQueue},
		{name: "target-group-size", fault: "is not a valid qq target count value", valid: atLeast(1),
			merge: greater, lacked: ClassicQueue},
	}
}

// settingNamed returns the setting of that name.
func settingNamed(name string) (setting, bool) {
	for _, all := range [...][]setting{settings(), mirroring(), own()} {
		if i := slices.IndexFunc(all, func(s setting) bool { return s.name == name }); i >= 0 {
			return all[i], true
		}
	}
	return setting{}, false
}

func isString(v any) bool { _, ok := v.(string); return ok }

func isInt(v any) bool { _, ok := v.(int64); return ok }

func atLeast(least int64) func(any) bool {
	return func(v any) bool { n, ok := v.(int64); return ok && n >= least }
}

func among(words ...string) func(any) bool {
	return func(v any) bool { s, ok := v.(string); return ok && slices.Contains(words, s) }
}

func isQueueVersion(v any) bool { return v == int64(1) || v == int64(2) }

// maxAge is how long a stream keeps what is in it.
var maxAge = regexp.MustCompile(`^0*[1-9][0-9]*[YMDhms]$`)

func isMaxAge(v any) bool { s, ok := v.(string); return ok && maxAge.MatchString(s) }

func lesser(user, operator any) any { return min(user.(int64), operator.(int64)) }

func greater(user, operator any) any { return max(user.(int64), operator.(int64)) }

func operators(_, operator any) any { return operator }

// lesserLimit is lesser for numbers of which a negative one is no limit.
func lesserLimit(user, operator any) any {
	if user.(int64) < 0 || operator.(int64) < 0 {
		return greater(user, operator)
	}
	return lesser(user, operator)
}
