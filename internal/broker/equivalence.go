package broker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
)

// A declaration of something that exists succeeds only if it asks for what is there.
// [amqp exchange.declare] [amqp queue.declare]

// difference compares a declaration with what exists and keeps the first difference.
type difference struct {
	what string // the thing, as texts name it
	err  error
}

// field compares two properties.
func (d *difference) field(name, got, current string) {
	if d.err == nil && got != current {
		d.fail(name, "'"+got+"'", "'"+current+"'")
	}
}

// flag compares two boolean properties.
func (d *difference) flag(name string, got, current bool) {
	d.field(name, strconv.FormatBool(got), strconv.FormatBool(current))
}

// argument compares one argument. A missing x-queue-type and "classic" are the same.
func (d *difference) argument(name string, got, current amqp.Table) {
	if d.err != nil {
		return
	}
	g, hasGot := got[name]
	c, hasCurrent := current[name]
	if name == argQueueType {
		if !hasGot {
			g, hasGot = c, c == "classic"
		}
		if !hasCurrent {
			c, hasCurrent = g, g == "classic"
		}
	}
	if hasGot == hasCurrent && (!hasGot || amqp.EqualValues(g, c)) {
		return
	}
	if hasGot && hasCurrent {
		d.fail(name, fmt.Sprintf("'%v'", g), fmt.Sprintf("'%v'", c))
		return
	}
	d.fail(name, describeArgument(g, hasGot), describeArgument(c, hasCurrent))
}

func (d *difference) fail(name, got, current string) {
	d.err = amqp.Errorf(amqp.PreconditionFailed,
		"inequivalent arg '%s' for %s: received %s but current is %s", name, d.what, got, current)
}

func describeArgument(v any, present bool) string {
	if !present {
		return "none"
	}
	return fmt.Sprintf("the value '%v' of type '%s'", v, amqp.TypeNameOf(v))
}

// cleanName removes line ends from a name, as RabbitMQ does.
func cleanName(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(name)
}

// checkNewName refuses to create what has a reserved name.
func checkNewName(kind, name string) error {
	if strings.HasPrefix(name, "amq.") {
		return amqp.Errorf(amqp.AccessRefused,
			"%s name '%s' contains reserved prefix 'amq.*'", kind, name)
	}
	return nil
}

// encodeArguments returns the encoded pairs, keys sorted; equal arguments are equal strings.
func encodeArguments(args amqp.Table) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	b, err := amqp.AppendTable(nil, args)
	if err != nil {
		return "", amqp.Errorf(amqp.SyntaxError, "arguments: %v", err)
	}
	return string(b[4:]), nil
}

// rawTable is the inverse, without decoding.
func rawTable(encoded string) amqp.RawTable { return amqp.RawTable(encoded) }
