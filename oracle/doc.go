// Package oracle compares the store with another implementation of the same
// promises: one over Pebble, a general key-value store, which has nothing in common
// with it. It is a module of its own, so that nobody who uses Duepost gets Pebble. It
// has only tests; make oracle runs them.
package oracle
