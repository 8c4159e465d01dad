package httpapi

import (
	"encoding/json"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/definitions"
)

// plainNumbers makes int64 and float64 of the numbers in what JSON held: integers stay integers.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String() // too large for any: let it be refused as a text
		}
		return f
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plainNumbers(e)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, e := range v {
			m[key] = plainNumbers(e)
		}
		return m
	}
	return v
}

// table makes arguments of a JSON object.
func table(m map[string]any) amqp.Table {
	t := make(amqp.Table, len(m))
	for key, v := range m {
		t[key] = argument(plainNumbers(v))
	}
	return t
}

func argument(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return table(v)
	case []any:
		for i, e := range v {
			v[i] = argument(e)
		}
	}
	return v
}

// plainTable makes a JSON object of arguments.
func plainTable(t amqp.Table) object { return definitions.PlainTable(t) }
