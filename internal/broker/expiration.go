package broker

import (
	"strconv"

	"github.com/duepost/duepost/internal/amqp"
)

// noTTL is the TTL of a message that has none.
const noTTL = -1

// maxTTL is the longest time to live and the longest x-expires, in milliseconds: ten years of
// 365 days, as in RabbitMQ.
const maxTTL = 10 * 365 * 24 * 60 * 60 * 1000

// parseExpiration reads the property expiration: milliseconds in decimal digits.
// [rmq per-message TTL]
func parseExpiration(s []byte) (ttl int64, err error) {
	why := ""
	n, digits := leadingInt(s)
	switch {
	case digits == 0:
		why = "no_integer"
	case digits < len(s):
		why = "{leftover_string,\"" + string(s[digits:]) + "\"}"
	case n < 0:
		why = "{value_negative," + strconv.FormatInt(n, 10) + "}"
	case n > maxTTL:
		why = "{value_too_large," + string(s) + "}"
	default:
		return n, nil
	}
	return 0, amqp.Errorf(amqp.PreconditionFailed, "invalid expiration '%s': %s", s, why)
}

// leadingInt reads the integer that s begins with and how many bytes it has; 0 if there is none.
// Beyond maxTTL only its size matters.
func leadingInt(s []byte) (n int64, length int) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	first := i
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n = min(n*10+int64(s[i]-'0'), maxTTL+1)
	}
	if i == first {
		return 0, 0
	}
	if s[0] == '-' {
		n = -n
	}
	return n, i
}
