package amqp

import (
	"bytes"
	"time"
)

// Equal reports whether two tables hold the same keys with values that
// EqualValues takes for equal. It is the equivalence of declare arguments.
func (t Table) Equal(o Table) bool {
	if len(t) != len(o) {
		return false
	}
	for key, v := range t {
		w, ok := o[key]
		if !ok || !EqualValues(v, w) {
			return false
		}
	}
	return true
}

// EqualValues reports whether two decoded field values are the same to
// RabbitMQ: numbers by value whatever their type, so that 1 equals 1.0,
// everything else by type and content.
func EqualValues(a, b any) bool {
	if x, ok := AsInt(a); ok {
		if y, ok := AsInt(b); ok {
			return x == y
		}
	}
	if x, ok := asNumber(a); ok {
		y, ok := asNumber(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && equalArrays(a, b)
	case Table:
		b, ok := b.(Table)
		return ok && a.Equal(b)
	case time.Time:
		b, ok := b.(time.Time)
		return ok && a.Unix() == b.Unix()
	case nil, bool, string, Decimal:
		switch b.(type) {
		case nil, bool, string, Decimal:
			return a == b
		}
	}
	return false
}

func equalArrays(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !EqualValues(a[i], b[i]) {
			return false
		}
	}
	return true
}

// AsInt returns a decoded field value if it is of an integer type.
func AsInt(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case uint8:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}

func asNumber(v any) (f float64, ok bool) {
	if n, ok := AsInt(v); ok {
		return float64(n), true
	}
	switch v := v.(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// TypeNameOf returns RabbitMQ's name of the field type a decoded value has,
// such as "longstr" for a string.
func TypeNameOf(v any) string {
	b, err := appendValue(nil, v, 1)
	if err != nil {
		return "unknown"
	}
	return TypeName(b[0])
}
