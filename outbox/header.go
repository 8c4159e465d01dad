package outbox

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// headerBox is the value of a header with its type, which JSON alone would lose.
type headerBox struct {
	Type  string               `json:"t"`
	Text  string               `json:"v,omitempty"` // what is neither bytes, list nor table
	Bytes []byte               `json:"b,omitempty"`
	List  []headerBox          `json:"l,omitempty"`
	Table map[string]headerBox `json:"m,omitempty"`
}

// maxDepth bounds lists and tables within each other.
const maxDepth = 32

func boxHeaders(headers map[string]any) (map[string]headerBox, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	return boxTable(headers, 0)
}

func boxTable(table map[string]any, depth int) (map[string]headerBox, error) {
	boxes := make(map[string]headerBox, len(table))
	for name, value := range table {
		box, err := boxValue(value, depth)
		if err == nil && !utf8.ValidString(name) {
			err = refuse(true, "name is not UTF-8 text")
		}
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", name, err)
		}
		boxes[name] = box
	}
	return boxes, nil
}

func boxValue(value any, depth int) (b headerBox, err error) {
	if depth > maxDepth {
		return b, refuse(true, "it is more than %d levels deep", maxDepth)
	}
	switch v := value.(type) {
	case nil:
		return headerBox{Type: "nil"}, nil
	case bool:
		return headerBox{Type: "bool", Text: strconv.FormatBool(v)}, nil
	case string:
		if utf8.ValidString(v) {
			return headerBox{Type: "string", Text: v}, nil
		}
		return headerBox{Type: "rawstring", Bytes: []byte(v)}, nil
	case []byte:
		return headerBox{Type: "bytes", Bytes: v}, nil
	case time.Time:
		return headerBox{Type: "time", Text: v.Format(time.RFC3339Nano)}, nil
	case float32:
		return headerBox{Type: "float32", Text: strconv.FormatUint(uint64(math.Float32bits(v)), 16)}, nil
	case float64:
		return headerBox{Type: "float64", Text: strconv.FormatUint(math.Float64bits(v), 16)}, nil
	case int, int8, int16, int32, int64, uint8, uint16, uint32:
		return headerBox{Type: fmt.Sprintf("%T", v), Text: fmt.Sprint(v)}, nil
	case []string:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return boxValue(list, depth)
	case []any:
		b.Type = "list"
		for _, one := range v {
			box, err := boxValue(one, depth+1)
			if err != nil {
				return b, err
			}
			b.List = append(b.List, box)
		}
		return b, nil
	case map[string]any:
		b.Type = "table"
		b.Table, err = boxTable(v, depth+1)
		return b, err
	}
	// The client library has a name of its own for tables.
	table := reflect.TypeFor[map[string]any]()
	if v := reflect.ValueOf(value); v.Kind() == reflect.Map && v.CanConvert(table) {
		return boxValue(v.Convert(table).Interface(), depth)
	}
	return b, refuse(true, "outbox cannot keep a %T", value)
}

func unboxHeaders(boxes map[string]headerBox) (map[string]any, error) {
	if len(boxes) == 0 {
		return nil, nil
	}
	return unboxTable(boxes)
}

func unboxTable(boxes map[string]headerBox) (map[string]any, error) {
	table := make(map[string]any, len(boxes))
	for name, box := range boxes {
		value, err := box.value()
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", name, err)
		}
		table[name] = value
	}
	return table, nil
}

func (b headerBox) value() (any, error) {
	switch b.Type {
	case "nil":
		return nil, nil
	case "bool":
		return strconv.ParseBool(b.Text)
	case "string":
		return b.Text, nil
	case "rawstring":
		return string(b.Bytes), nil
	case "bytes":
		return append([]byte{}, b.Bytes...), nil
	case "time":
		return time.Parse(time.RFC3339Nano, b.Text)
	case "float32":
		bits, err := strconv.ParseUint(b.Text, 16, 32)
		return math.Float32frombits(uint32(bits)), err
	case "float64":
		bits, err := strconv.ParseUint(b.Text, 16, 64)
		return math.Float64frombits(bits), err
	case "list":
		list := make([]any, len(b.List))
		for i := range list {
			var err error
			if list[i], err = b.List[i].value(); err != nil {
				return nil, err
			}
		}
		return list, nil
	case "table":
		return unboxTable(b.Table)
	}
	return b.number()
}

// number unboxes what JSON can read into its own type.
func (b headerBox) number() (any, error) {
	switch b.Type {
	case "int":
		return parse[int](b.Text)
	case "int8":
		return parse[int8](b.Text)
	case "int16":
		return parse[int16](b.Text)
	case "int32":
		return parse[int32](b.Text)
	case "int64":
		return parse[int64](b.Text)
	case "uint8":
		return parse[uint8](b.Text)
	case "uint16":
		return parse[uint16](b.Text)
	case "uint32":
		return parse[uint32](b.Text)
	}
	return nil, fmt.Errorf("unknown type %q", b.Type)
}

func parse[T any](text string) (any, error) {
	var v T
	err := json.Unmarshal([]byte(text), &v)
	return v, err
}
