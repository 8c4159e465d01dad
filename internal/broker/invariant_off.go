//go:build !race && !invariants

package broker

func invariant(bool, string) {}
