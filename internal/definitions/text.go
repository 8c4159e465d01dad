package definitions

import (
	"fmt"
	"unicode/utf8"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
)

// checkText refuses to export names and arguments that are no UTF-8: AMQP carries any bytes, JSON
// does not, and another name in the file would be worse than no file.
func checkText(vhost string, d *broker.Declarations) error {
	for i := range d.Queues {
		if q := &d.Queues[i]; !isText(q.Name) || !isText(q.Args) {
			return notText("queue", q.Name, vhost)
		}
	}
	for i := range d.Exchanges {
		if x := &d.Exchanges[i]; !isText(x.Name) || !isText(x.Args) {
			return notText("exchange", x.Name, vhost)
		}
	}
	for i := range d.Bindings {
		if b := &d.Bindings[i]; !isText(b.RoutingKey) || !isText(b.Args) {
			return notText("binding from exchange", b.Source, vhost)
		}
	}
	return nil
}

func notText(what, name, vhost string) error {
	return fmt.Errorf("export definitions: %s %q in vhost %q: its name, key or arguments are not UTF-8",
		what, name, vhost)
}

// isText reports whether all texts in a value are UTF-8.
func isText(v any) bool {
	switch v := v.(type) {
	case string:
		return utf8.ValidString(v)
	case []byte:
		return utf8.Valid(v)
	case []any:
		for _, e := range v {
			if !isText(e) {
				return false
			}
		}
	case amqp.Table:
		for key, e := range v {
			if !isText(key) || !isText(e) {
				return false
			}
		}
	}
	return true
}
