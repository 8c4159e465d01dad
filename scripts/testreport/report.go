package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// test is one test or subtest of one package.
type test struct{ pkg, name string }

// report counts ends and keeps the output of each test until it is known
// whether anybody needs it.
type report struct {
	w       io.Writer
	output  map[test][]string
	parents map[test]bool
	ends    map[test]string
	broken  []string
	skips   []string
	started time.Time
}

func newReport(w io.Writer) *report {
	return &report{
		w: w, started: time.Now(),
		output: map[test][]string{}, parents: map[test]bool{}, ends: map[test]string{},
	}
}

// read consumes events until src ends. A line that is no event is passed on: it
// comes from a tool that spoke past the test runner.
func (r *report) read(src io.Reader) error {
	lines := bufio.NewReader(src)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				fmt.Fprintf(r.w, "%s", line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	id := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		r.output[id] = append(r.output[id], e.Output)
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "build-fail":
		r.broken = append(r.broken, "build "+e.ImportPath)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
			return
		}
		r.endTest(id, e)
	}
}

func (r *report) endTest(id test, e event) {
	r.ends[id] = e.Action
	for at := strings.LastIndexByte(id.name, '/'); at >= 0; at = strings.LastIndexByte(id.name[:at], '/') {
		r.parents[test{id.pkg, id.name[:at]}] = true
	}
	switch e.Action {
	case "fail":
		fmt.Fprintf(r.w, "FAIL %s %s (%.2fs)\n%s", id.pkg, id.name, e.Elapsed, strings.Join(r.output[id], ""))
		r.broken = append(r.broken, id.pkg+" "+id.name)
	case "skip":
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", id.pkg, id.name, reason(r.output[id])))
	}
	delete(r.output, id)
}

// endPackage prints the runner's own last line ("ok ..." or "FAIL ..."), and
// everything the package printed outside its tests if it failed: a panic, a
// time-out, a data race.
func (r *report) endPackage(e event) {
	id := test{e.Package, ""}
	lines := r.output[id]
	delete(r.output, id)
	if e.Action == "skip" {
		return
	}
	if e.Action == "fail" {
		for other, left := range r.output {
			if other.pkg == e.Package {
				lines = append(lines, left...)
			}
		}
		r.broken = append(r.broken, e.Package)
		fmt.Fprint(r.w, strings.Join(lines, ""))
		return
	}
	if len(lines) > 0 {
		fmt.Fprint(r.w, lines[len(lines)-1])
	}
}

// reason is what a skipped test said, without the runner's own lines.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// close prints the list of skips, the list of failures and the counts. A test
// with subtests is not counted itself.
func (r *report) close() {
	list(r.w, "skipped", r.skips)
	list(r.w, "failed", r.broken)
	passed, failed, skipped := r.counts()
	fmt.Fprintf(r.w, "took %s\n", time.Since(r.started).Round(100*time.Millisecond))
	fmt.Fprintf(r.w, "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped)
}

func list(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	slices.Sort(lines)
	fmt.Fprintf(w, "%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func (r *report) counts() (passed, failed, skipped int) {
	for id, end := range r.ends {
		switch {
		case r.parents[id]:
		case end == "pass":
			passed++
		case end == "fail":
			failed++
		case end == "skip":
			skipped++
		}
	}
	// A package that did not build or crashed has no failed test to count.
	if failed == 0 {
		failed = len(r.broken)
	}
	return passed, failed, skipped
}

// ok reports whether the run may count as good. strict forbids skips.
func (r *report) ok(strict bool) bool {
	passed, _, _ := r.counts()
	return passed > 0 && len(r.broken) == 0 && (!strict || len(r.skips) == 0)
}
