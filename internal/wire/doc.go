// Package wire turns the bytes of an AMQP 0-9-1 connection into frames and
// methods and back.
//
// It knows frames, the arguments of every method and the layout of content; it
// does not know in which order they may come, what they do, or sockets beyond
// an io.Reader. [amqp 4.2]
//
// [Reader] serves frames from one buffer. A method frame's payload is split by
// [CutMethodID] and decoded into a struct of the method's name, kept and reused
// for frequent methods or made by [New] for the others. The Append functions
// write whole frames to the end of a buffer.
//
// Invariants: what a Reader, a Decode or a Cut function returns are views of
// the bytes given, except the strings in methods without content, which are
// copies; no length is believed before its bytes are there; nothing on the way
// of a published or delivered message allocates.
package wire
