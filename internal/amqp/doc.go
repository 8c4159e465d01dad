// Package amqp holds the values of AMQP 0-9-1: field tables, message
// properties, reply codes and the error that carries one.
//
// It knows how these values look as bytes and nothing about frames, methods,
// connections or the broker. It does no I/O.
//
// Two shapes of every value exist. [Table] is decoded, owns its memory and is
// for rare work such as declaring a queue. [RawTable], [RawValue] and
// [Properties] are views into the bytes they were read from, cost no
// allocation and are valid as long as those bytes are; they are for work done
// once per message.
//
// Invariants: decoding never panics and never reserves memory for a length it
// has not seen the bytes of; a table that passed [RawTable.Validate] can be
// walked, looked up and decoded without error.
package amqp
