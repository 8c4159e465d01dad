package topology

import (
	"fmt"
	"strings"
)

// Names of what all delayed exchanges of a virtual host share. A user of a relay needs its
// permissions on Prefix and on the names of the delayed exchanges.
const (
	Prefix = "duepost."

	Intake = Prefix + "intake"
	Rescue = Prefix + "rescue" // a queue, and the exchange before it
	Parked = Prefix + "parked"

	wheelPrefix = Prefix + "wheel."
)

// Version is of the layout: names, arguments and headers of the wheel. It is noted on the exchange
// before the rescue, so that a relay of another layout is refused and not mistaken.
const Version = 1

const (
	// DueSuffix makes of a delayed exchange's name that of the exchange with its bindings.
	DueSuffix = ".duepost"
	// maxName is the longest name of an exchange. [amqp shortstr]
	maxName = 255
)

// DueExchange is the exchange with the bindings of the delayed exchange name.
func DueExchange(name string) string { return name + DueSuffix }

// WheelQueue is where messages wait for a slot of a level.
func WheelQueue(level, index int) string { return fmt.Sprintf("%s%d.%d", wheelPrefix, level, index) }

// Exchange is a delayed exchange.
type Exchange struct {
	Name string `json:"name"`
	// Type is the type by which bindings are read: direct, topic, fanout or headers.
	Type       string `json:"type"`
	Durable    bool   `json:"durable"`
	AutoDelete bool   `json:"auto_delete"`
	Internal   bool   `json:"internal"`
	// Alternate is the alternate exchange for what nobody takes when it is due; empty for none.
	Alternate string `json:"alternate_exchange"`
}

// Check returns what is wrong with x, nil for nothing.
func (x Exchange) Check() error {
	switch x.Type {
	case "direct", "topic", "fanout", "headers":
	default:
		return fmt.Errorf("check exchange %q: type is %q, allowed are direct, topic, fanout and headers", x.Name, x.Type)
	}
	switch {
	case x.Name == "":
		return fmt.Errorf("check exchange: the name is empty, which is the default exchange")
	case len(x.Name) > maxName-len(DueSuffix):
		return fmt.Errorf("check exchange %.40q: the name has %d bytes, allowed are %d",
			x.Name, len(x.Name), maxName-len(DueSuffix))
	case strings.HasSuffix(x.Name, DueSuffix), strings.HasPrefix(x.Name, Prefix):
		return fmt.Errorf("check exchange %q: names that begin with %q or end with %q are the relay's own",
			x.Name, Prefix, DueSuffix)
	case strings.HasPrefix(x.Name, "amq."):
		return fmt.Errorf("check exchange %q: names that begin with \"amq.\" are RabbitMQ's own", x.Name)
	}
	return nil
}
