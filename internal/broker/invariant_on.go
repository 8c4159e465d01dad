//go:build race || invariants

package broker

// invariant panics if what must hold does not. It is compiled in with the race detector and
// with the tag invariants; else it costs nothing.
func invariant(ok bool, what string) {
	if !ok {
		panic("broker: " + what)
	}
}
