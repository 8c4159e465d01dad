package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
)

// results reads what a test binary prints with -test.v and keeps the end and
// the output of each test.
type results struct {
	wanted  []string
	ends    map[string]string
	output  map[string][]byte
	current string
	partial []byte
	other   []byte
}

func newResults(wanted []string) *results {
	slices.Sort(wanted)
	return &results{wanted: wanted, ends: map[string]string{}, output: map[string][]byte{}}
}

var (
	beginLine = regexp.MustCompile(`^=== (?:RUN|CONT|NAME)\s+([^/\s]+)`)
	endLine   = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)
)

// Write takes output as it comes, in pieces of any size.
func (r *results) Write(p []byte) (int, error) {
	r.partial = append(r.partial, p...)
	for {
		at := bytes.IndexByte(r.partial, '\n')
		if at < 0 {
			return len(p), nil
		}
		r.line(r.partial[:at+1])
		r.partial = r.partial[at+1:]
	}
}

func (r *results) line(line []byte) {
	if m := beginLine.FindSubmatch(line); m != nil {
		r.current = string(m[1])
	}
	if m := endLine.FindSubmatch(line); m != nil {
		r.current = string(m[2])
		r.ends[r.current] = string(m[1])
	}
	if r.current == "" {
		r.other = append(r.other, line...)
		return
	}
	r.output[r.current] = append(r.output[r.current], line...)
}

// judge prints what is not as it must be and the counts, and returns an error if
// there was anything.
func (r *results) judge(w io.Writer, left []leftOut, testsErr, stopErr error) error {
	var bad []string
	passed := 0
	for _, name := range r.wanted {
		switch end := r.ends[name]; end {
		case "PASS":
			passed++
		default:
			if end == "" {
				end = "DID NOT END"
			}
			bad = append(bad, fmt.Sprintf("%s: %s", name, end))
			fmt.Fprintf(w, "%s %s\n%s\n", end, name, r.output[name])
		}
	}
	fmt.Fprintf(w, "left out of %s, %d tests:\n", client, len(left))
	for _, l := range left {
		fmt.Fprintf(w, "  %s: %s\n", l.test, l.reason)
	}
	for _, line := range bad {
		fmt.Fprintf(w, "not passed: %s\n", line)
	}
	fmt.Fprintf(w, "conformance: %d passed, %d failed\n", passed, len(bad))
	switch {
	case len(bad) > 0:
		return errors.Join(fmt.Errorf("%d of %d tests did not pass", len(bad), len(r.wanted)), testsErr, stopErr)
	case passed == 0:
		return errors.Join(errors.New("no test ran"), testsErr, stopErr)
	case testsErr != nil:
		// For example goroutines that the client's own leak check found at the end.
		return errors.Join(fmt.Errorf("run tests: %w\n%s%s", testsErr, r.other, r.output[r.current]), stopErr)
	}
	return stopErr
}
