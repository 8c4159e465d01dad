package duepost

// Mode is how messages are delayed.
type Mode string

// The modes.
const (
	// ModeAuto finds out on connect.
	ModeAuto Mode = ""
	// ModeNative keeps delayed messages in exchanges of type x-delayed-message: Duepost, and
	// RabbitMQ with the plugin.
	ModeNative Mode = "native"
	// ModeWaitQueues keeps them in queues with a time to live: any RabbitMQ.
	ModeWaitQueues Mode = "wait-queues"
	// ModeNone: the user of the connection may declare neither, so that every delayed publish is
	// ErrNotSupported. The choice can still be forced with [Options.Mode].
	ModeNone Mode = "none"
)

// Broker is what the client found out about the broker that it is connected to.
type Broker struct {
	// Product and Version are what the broker calls itself: Duepost, RabbitMQ.
	Product, Version string
	// Mode is how messages are delayed, never ModeAuto.
	Mode Mode
	// Keys says that messages that wait can be replaced and canceled by [Message.Key].
	Keys bool
}

// Broker tells what was found out about the broker on the last connect.
func (c *Client) Broker() Broker { return Broker{} }
