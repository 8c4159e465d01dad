package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/duepost/duepost/internal/amqp"
)

// reader takes a file apart and notes what is wrong.
type reader struct {
	faults Faults
}

func (r *reader) fault(at place, format string, a ...any) {
	r.faults = append(r.faults, Fault{Place: string(at), Text: fmt.Sprintf(format, a...)})
}

// decode reads the JSON of a file, which must be one object.
func (r *reader) decode(data []byte) object {
	whole := object{reader: r, at: root}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var text json.RawMessage
	if err := json.Unmarshal(data, &text); err != nil {
		line, column := position(data, err)
		r.fault(root, "is not JSON: line %d, column %d: %v", line, column, err)
		return whole
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		r.fault(root, "%v", err)
		return whole
	}
	whole.fields, _ = v.(map[string]any)
	if whole.fields == nil {
		r.fault(root, "is %s, must be an object", kindOf(v))
	}
	return whole
}

// position returns line and column, both from 1, of what is no JSON.
func position(data []byte, err error) (line, column int) {
	before := data
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset <= int64(len(data)) {
		before = data[:max(0, syntax.Offset-1)]
	}
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// kindOf names what JSON calls a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}

// object is a JSON object of the file.
type object struct {
	*reader
	at     place
	fields map[string]any
}

// objects returns the elements of a list of objects; a list that is not there is empty.
func (o object) objects(key string) []object {
	list, ok := o.fields[key].([]any)
	if v, given := o.fields[key]; given && !ok {
		o.fault(o.at.field(key), "is %s, must be a list", kindOf(v))
	}
	all := make([]object, 0, len(list))
	for i, v := range list {
		at := o.at.field(key).element(i)
		fields, ok := v.(map[string]any)
		if !ok {
			o.fault(at, "is %s, must be an object", kindOf(v))
			continue
		}
		all = append(all, object{reader: o.reader, at: at, fields: fields})
	}
	return all
}

// object returns an object in the object, whose fields are nil if there is none.
func (o object) object(key string) object {
	in := object{reader: o.reader, at: o.at.field(key)}
	v, given := o.fields[key]
	var ok bool
	in.fields, ok = v.(map[string]any)
	// An empty list stands for an empty object: some languages tell them apart badly.
	if list, isList := v.([]any); given && !ok && !(isList && len(list) == 0) {
		o.fault(in.at, "is %s, must be an object", kindOf(v))
	}
	return in
}

// text returns a text that must be there.
func (o object) text(key string) string {
	if _, ok := o.fields[key]; !ok {
		o.fault(o.at, "has no %s", key)
		return ""
	}
	return o.textOr(key, "")
}

// textOr returns a text that need not be there.
func (o object) textOr(key, otherwise string) string {
	v, given := o.fields[key]
	if !given {
		return otherwise
	}
	s, ok := v.(string)
	if !ok {
		o.fault(o.at.field(key), "is %s, must be a text", kindOf(v))
	}
	return s
}

// name returns a text that must be there and can be a name: it is not empty and not too long.
func (o object) name(key string) string {
	s := o.short(key)
	if v, given := o.fields[key]; given && v == "" {
		o.fault(o.at.field(key), "is empty")
	}
	return s
}

// short returns a text that must be there and that AMQP can carry.
func (o object) short(key string) string {
	s := o.text(key)
	if len(s) > amqp.MaxShortStr {
		o.fault(o.at.field(key), "has %d bytes, %d are allowed", len(s), amqp.MaxShortStr)
	}
	return s
}

// flag returns a boolean that need not be there. RabbitMQ exports "undefined" for what it was not
// told.
func (o object) flag(key string, otherwise bool) bool {
	v, given := o.fields[key]
	if !given || v == "undefined" {
		return otherwise
	}
	b, ok := v.(bool)
	if !ok {
		o.fault(o.at.field(key), "is %s, must be true or false", kindOf(v))
	}
	return b
}

// float returns a number that need not be there.
func (o object) float(key string, otherwise float64) float64 {
	v, given := o.fields[key]
	if !given {
		return otherwise
	}
	n, ok := v.(json.Number)
	f, err := n.Float64()
	if !ok || err != nil {
		o.fault(o.at.field(key), "is %s, must be a number", kindOf(v))
	}
	return f
}

// arguments returns the arguments of a declaration; none need be there.
func (o object) arguments() Arguments {
	in := o.object("arguments")
	return Arguments(o.table(in.at, in.fields))
}

// raw returns the JSON of a value.
func (o object) raw(key string) json.RawMessage {
	b, err := json.Marshal(o.fields[key])
	if err != nil {
		o.fault(o.at.field(key), "%v", err)
	}
	return b
}
