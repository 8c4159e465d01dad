package headers

import (
	"math"

	"github.com/duepost/duepost/internal/amqp"
)

// number returns a header's value as a whole number: integers of every width,
// floats truncated toward zero, strings that hold an integer. What exceeds 64
// bits becomes the nearest that does not.
func number(v amqp.RawValue) (n int64, ok bool) {
	if n, ok = v.Int(); ok {
		return n, true
	}
	if f, ok := v.Float(); ok {
		return truncate(f)
	}
	if s, ok := v.Str(); ok {
		return decimalDigits(s)
	}
	return 0, false
}

func truncate(f float64) (n int64, ok bool) {
	const limit = 1 << 63
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return 0, false
	case f >= limit:
		return math.MaxInt64, true
	case f < -limit:
		return -math.MaxInt64, true
	}
	return int64(f), true
}

// decimalDigits reads an optional sign and decimal digits, nothing else.
func decimalDigits(s []byte) (n int64, ok bool) {
	negative := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := int64(c - '0')
		if n > (math.MaxInt64-digit)/10 {
			n = math.MaxInt64 // and stays there
			continue
		}
		n = n*10 + digit
	}
	if negative {
		n = -n
	}
	return n, true
}
