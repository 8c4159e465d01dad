package policy

// own are the keys that only Duepost has: about delayed exchanges, and one about queues. Both may
// have them as arguments, with "x-" before the name. RabbitMQ's texts have no name of the key; ours
// have it, and what is allowed.
func own() []setting {
	return []setting{
		{name: "dead-letter-unroutable", fault: "is not a valid dead-letter-unroutable. Must be one of: park, drop",
			valid: among("park", "drop")},
		{name: "delayed-compat", fault: "is not a valid delayed-compat. Must be one of: strict, plugin",
			valid: among("strict", "plugin")},
		{name: "delayed-dead-letter-exchange", fault: "is not a valid delayed-dead-letter-exchange. Must be a text",
			valid: isString},
		{name: "delayed-late", fault: "is not a valid delayed-late. Must be one of: deliver, dead-letter, drop",
			valid: among("deliver", "dead-letter", "drop")},
		{name: "delayed-late-after", fault: "is not a valid delayed-late-after. Must be milliseconds, from 0",
			valid: atLeast(0)},
		{name: "delayed-max-length", fault: "is not a valid delayed-max-length. Must be an integer from 0",
			valid: atLeast(0), merge: lesser},
		{name: "delayed-max-length-bytes", fault: "is not a valid delayed-max-length-bytes. Must be an integer from 0",
			valid: atLeast(0), merge: lesser},
		{name: "delayed-unroutable", fault: "is not a valid delayed-unroutable. Must be one of: park, drop",
			valid: among("park", "drop")},
	}
}
