// Package headers is the contract of the message headers the broker itself
// reads and writes: how long to delay a message, what a released message shows,
// and further routing keys.
//
// It knows names, types and meaning. It does not know exchanges, queues or
// clocks: the instant a message was accepted is given to it.
//
// Invariant: reading a message's headers allocates nothing unless they are
// refused.
package headers

// Names of the headers the broker reads or writes. Names are case-sensitive.
const (
	// XDelay is a delay in milliseconds from acceptance.
	XDelay = "x-delay"
	// DeliveryDelay is a delay in milliseconds from acceptance.
	DeliveryDelay = "x-opt-delivery-delay"
	// DeliveryTime is an instant in milliseconds since 1970.
	DeliveryTime = "x-opt-delivery-time"

	// DelayKey is the publisher's own name for a message that waits.
	DelayKey = "x-delay-key"
	// DelayCancel takes out what waits under a DelayKey.
	DelayCancel = "x-delay-cancel"

	// Accepted is when a message for a delayed exchange of a relay was accepted, in milliseconds
	// since 1970, as its gateway saw it.
	Accepted = "x-duepost-accepted"
	// HeldBCC and HeldExpiration keep BCC and the expiration property of a message that waits in
	// RabbitMQ: there the one would be taken away and the other run out.
	HeldBCC        = "x-duepost-bcc"
	HeldExpiration = "x-duepost-expiration"

	// CC holds further routing keys.
	CC = "CC"
	// BCC holds further routing keys that no consumer sees.
	BCC = "BCC"

	// XDeath is the history of dead-lettering.
	XDeath = "x-death"
	// FirstDeathReason and its like repeat the oldest entry of XDeath.
	FirstDeathReason   = "x-first-death-reason"
	FirstDeathQueue    = "x-first-death-queue"
	FirstDeathExchange = "x-first-death-exchange"
	// LastDeathReason and its like repeat the newest entry of XDeath.
	LastDeathReason   = "x-last-death-reason"
	LastDeathQueue    = "x-last-death-queue"
	LastDeathExchange = "x-last-death-exchange"
)
