package policy

// own are the keys that only Duepost has: about delayed exchanges, and one about queues. Both may
// have them as arguments, with "x-" before the name.
func own() []setting {
	return []setting{
		{name: "dead-letter-unroutable", fault: "is not a valid way with unroutable dead letters. Must be one of: park, drop",
			valid: among("park", "drop")},
		{name: "delayed-compat", fault: "is not a known way of delayed exchanges. Must be one of: strict, plugin",
			valid: among("strict", "plugin")},
		{name: "delayed-dead-letter-exchange", fault: "is not a valid dead letter exchange name", valid: isString},
		{name: "delayed-late", fault: "is not a valid late policy. Must be one of: deliver, dead-letter, drop",
			valid: among("deliver", "dead-letter", "drop")},
		{name: "delayed-late-after", fault: "is not a valid lateness", valid: atLeast(0)},
		{name: "delayed-max-length", fault: "is not a valid maximum length", valid: atLeast(0), merge: lesser},
		{name: "delayed-max-length-bytes", fault: "is not a valid maximum length in bytes", valid: atLeast(0), merge: lesser},
		{name: "delayed-unroutable", fault: "is not a valid way with unroutable messages. Must be one of: park, drop",
			valid: among("park", "drop")},
	}
}
