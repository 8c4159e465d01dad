package definitions

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/duepost/duepost/internal/amqp"
)

// PlainTable returns a table of what JSON has: bytes are text, timestamps seconds, and a float that
// is no number is the text of it.
func PlainTable(t amqp.Table) map[string]any {
	m := make(map[string]any, len(t))
	for key, v := range t {
		m[key] = plain(v)
	}
	return m
}

func plain(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		return PlainTable(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	case []byte:
		return string(v)
	case time.Time:
		return v.Unix()
	case amqp.Decimal:
		return float64(v.Value) / math.Pow10(int(v.Scale))
	case float32:
		return plain(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return v
}

// table makes arguments of a JSON object. Numbers without point and exponent become integers of 64
// bits. [rmq definitions]
func (r *reader) table(at place, m map[string]any) amqp.Table {
	t := make(amqp.Table, len(m))
	for key, v := range m {
		if len(key) > amqp.MaxShortStr {
			r.fault(at, "key %.20s... has %d bytes, %d are allowed", key, len(key), amqp.MaxShortStr)
			continue
		}
		t[key] = r.value(at.field(key), v)
	}
	return t
}

// value makes an argument of a JSON value.
func (r *reader) value(at place, v any) any {
	switch v := v.(type) {
	case json.Number:
		return r.number(at, v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = r.value(at.element(i), e)
		}
		return list
	case map[string]any:
		return r.table(at, v)
	}
	return v
}

// number returns an int64 or a float64.
func (r *reader) number(at place, n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil || f == math.Trunc(f) && isInteger(n) {
		r.fault(at, "%s does not fit 64 bits", n)
	}
	return f
}

// isInteger reports whether a number is written as one.
func isInteger(n json.Number) bool {
	for _, c := range n {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}
