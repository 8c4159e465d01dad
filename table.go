package duepost

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// toTable returns m in the client library's own type, with room for more entries. Without
// more, and if no value must be converted, it is m itself; else it is a copy. Values that AMQP
// has no type for are ErrInvalid.
func toTable(m map[string]any, more int) (amqp.Table, error) {
	if more == 0 && isTable(m) {
		return amqp.Table(m), nil
	}
	t := make(amqp.Table, len(m)+more)
	for k, v := range m {
		if len(k) > maxShortString {
			return nil, invalid("header %.20q…: its name has %d bytes, allowed are %d", k, len(k), maxShortString)
		}
		value, err := toValue(v)
		if err != nil {
			return nil, invalid("header %q: %v", k, err)
		}
		t[k] = value
	}
	return t, nil
}

// isTable reports whether each value can be sent as it is.
func isTable(m map[string]any) bool {
	for k, v := range m {
		switch v.(type) {
		case nil, bool, int, int8, byte, int16, int32, int64, float32, float64, string, []byte:
			if len(k) > maxShortString {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// toValue converts what has another name in the client library: maps, and lists of anything.
func toValue(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return toTable(v, 1)
	case amqp.Table:
		return toTable(v, 1)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = toValue(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case []string:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return list, nil
	case uint16:
		return int32(v), nil
	case uint32:
		return int64(v), nil
	}
	if err := (amqp.Table{"": v}).Validate(); err != nil {
		return nil, fmt.Errorf("AMQP has no type for %T", v)
	}
	return v, nil
}
