package broker

import (
	"strings"

	"github.com/duepost/duepost/internal/amqp"
)

// headersBinding is what a binding of a headers exchange asks for. [amqp 3.1.3.4]
type headersBinding struct {
	pairs []headersPair
	any   bool // one pair is enough
	to    destinations
}

// headersPair is a header that a message must have; with a void value its presence is enough.
type headersPair struct {
	key   string
	value amqp.RawValue
}

const argMatch = "x-match"

// checkMatchArgument validates x-match.
func checkMatchArgument(args amqp.Table) error {
	v, ok := args[argMatch]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		return amqp.Errorf(amqp.PreconditionFailed,
			"Invalid x-match field type %s (value %v); expected longstr", amqp.TypeNameOf(v), v)
	}
	switch s {
	case "all", "any", "all-with-x", "any-with-x":
		return nil
	}
	return amqp.Errorf(amqp.PreconditionFailed, "Invalid x-match field value <<%q>>; "+
		"expected all, any, all-with-x, or any-with-x", s)
}

// newHeadersBinding reads the arguments of a binding. Those that begin with "x-" count only if
// x-match says so.
func newHeadersBinding(b *binding) headersBinding {
	mode, _ := b.args[argMatch].(string)
	h := headersBinding{any: strings.HasPrefix(mode, "any")}
	h.to.add(b)
	withX := strings.HasSuffix(mode, "-with-x")
	for key, v := range rawTable(b.bindingKey.args).All() {
		name := string(key)
		if name == argMatch || !withX && strings.HasPrefix(name, "x-") {
			continue
		}
		h.pairs = append(h.pairs, headersPair{key: name, value: v})
	}
	return h
}

// matches reports whether a message with these headers is wanted. A binding that asks for any
// of nothing gets nothing.
func (h *headersBinding) matches(headers amqp.RawTable) bool {
	for i := range h.pairs {
		p := &h.pairs[i]
		v, ok := headers.Lookup(p.key)
		ok = ok && (p.value.Type == amqp.TypeVoid || p.value.Equal(v))
		if ok == h.any {
			return ok
		}
	}
	return !h.any
}
