// Package tidy is the house rules as a test. It has no code of its own: the test reads the
// whole repository and names each file and line that breaks a rule of CONTRIBUTING.md.
//
// Every rule brings a small bad example, which it must find, and a good one, in which it must
// find nothing, so that a rule cannot die unnoticed. Lengths are only printed: run
// go test -v -run Lengths ./internal/tidy.
package tidy
