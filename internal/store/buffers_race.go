//go:build race

package store

// The race detector does not see that the garbage collector orders the last
// read of a view before the reuse of its buffer.
const reuseBuffers = false
