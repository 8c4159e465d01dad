package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
)

// difference is a line of a rule about which the two brokers differ and may.
type difference struct {
	rule, label string
	// heading and words say where docs/SEMANTICS.md documents it: the words stand in the first
	// column of a row, or in a sentence, below the heading.
	heading, words string
}

// columnWidth is how many letters of what a broker did the table shows.
const columnWidth = 70

// verdict is what is to be said about a row.
type verdict struct {
	row
	same       bool
	documented []difference // those that its lines needed
	faults     []string     // what makes the run fail
	differing  []pair
}

// pair is a label with what either broker did; "-" if it did not come so far.
type pair struct{ label, theirs, ours string }

// judge compares the rows. complete means that all rules were played, so that a difference that
// none of them shows is one too many.
func judge(rows []row, known []difference, documents string, complete bool) []verdict {
	used := make([]bool, len(known))
	var verdicts []verdict
	for _, r := range rows {
		v := verdict{row: r, differing: differing(r.theirs.lines, r.ours.lines)}
		for _, broken := range []struct{ who, why string }{{"RabbitMQ", r.theirs.broken}, {"Duepost", r.ours.broken}} {
			if broken.why != "" {
				v.faults = append(v.faults, "not observed on "+broken.who+": "+broken.why)
			}
		}
		v.same = len(v.differing) == 0
		for _, d := range v.differing {
			at := find(known, r.rule, d.label)
			if at < 0 {
				v.faults = append(v.faults, "not documented: "+d.label)
				continue
			}
			if !used[at] {
				v.documented = append(v.documented, known[at])
			}
			used[at] = true
		}
		verdicts = append(verdicts, v)
	}
	return append(verdicts, stale(known, used, documents, complete)...)
}

// stale finds entries that no row needs, and entries that the document does not have.
func stale(known []difference, used []bool, documents string, complete bool) (verdicts []verdict) {
	for i, d := range known {
		var faults []string
		if complete && !used[i] {
			faults = append(faults, "documented as a difference, but there is none: "+d.label)
		}
		if !isDocumented(documents, d) {
			faults = append(faults, fmt.Sprintf("no %q below the heading %q of the document", d.words, d.heading))
		}
		if faults != nil {
			verdicts = append(verdicts, verdict{row: row{rule: d.rule}, faults: faults})
		}
	}
	return verdicts
}

func find(known []difference, rule, label string) int {
	for i, d := range known {
		if d.rule == rule && d.label == label {
			return i
		}
	}
	return -1
}

// isDocumented reports whether the words stand below the heading.
func isDocumented(document string, d difference) bool {
	heading := regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(d.heading) + `$`)
	at := heading.FindStringIndex(document)
	if at == nil || d.words == "" {
		return false
	}
	section := document[at[1]:]
	if next := regexp.MustCompile(`(?m)^#+ `).FindStringIndex(section); next != nil {
		section = section[:next[0]]
	}
	return strings.Contains(strings.Join(strings.Fields(section), " "), d.words)
}

// differing pairs the lines by label; of several with one label the first with the first.
func differing(theirs, ours []line) (found []pair) {
	left := map[string][]string{}
	for _, l := range ours {
		left[l.label] = append(left[l.label], l.value)
	}
	for _, l := range theirs {
		other := "-"
		if values := left[l.label]; len(values) > 0 {
			other, left[l.label] = values[0], values[1:]
		}
		if l.value != other {
			found = append(found, pair{l.label, l.value, other})
		}
	}
	for _, l := range ours {
		if values := left[l.label]; len(values) > 0 {
			left[l.label] = values[1:]
			found = append(found, pair{l.label, "-", values[0]})
		}
	}
	return found
}

// report prints the table and ends with an error if anything is not as it must be.
func report(w io.Writer, theirs string, verdicts []verdict) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "rule\t%s\tDuepost\tverdict\n", theirs)
	same, documented, failed := 0, 0, 0
	for _, v := range verdicts {
		fmt.Fprintln(out, v.summary())
		for _, d := range v.differing {
			fmt.Fprintf(out, "  %s\t%s\t%s\t\n", cut(d.label, 40), cut(d.theirs, columnWidth), cut(d.ours, columnWidth))
		}
		switch {
		case len(v.faults) > 0:
			failed++
		case v.same:
			same++
		default:
			documented++
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, v := range verdicts {
		for _, fault := range v.faults {
			fmt.Fprintf(w, "FAIL %s: %s\n", v.rule, fault)
		}
		if len(v.faults) > 0 {
			for _, d := range v.differing {
				fmt.Fprintf(w, "     %s\n       RabbitMQ %s\n       Duepost  %s\n", d.label, d.theirs, d.ours)
			}
		}
	}
	fmt.Fprintf(w, "parity with %s: %d rules, %d same, %d documented differences, %d failed\n",
		theirs, len(verdicts), same, documented, failed)
	if failed > 0 {
		return fmt.Errorf("%s: %d of %d rules failed", theirs, failed, len(verdicts))
	}
	return nil
}

// summary is the line of the table: what was seen where that is short, else how much.
func (v verdict) summary() string {
	last := "same"
	switch {
	case len(v.faults) > 0:
		last = "FAIL"
	case !v.same:
		var places []string
		for _, d := range v.documented {
			places = append(places, d.heading+": "+d.words)
		}
		last = "documented: " + cut(strings.Join(places, "; "), columnWidth)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", v.rule, v.theirs.short(), v.ours.short(), last)
}

// short is as much of the lines as a column holds; labels only where there are several.
func (o observation) short() string {
	switch {
	case o.broken != "":
		return "broken"
	case len(o.lines) == 1:
		return cut(o.lines[0].value, columnWidth)
	}
	var all []string
	for _, l := range o.lines {
		all = append(all, l.label+": "+l.value)
	}
	return cut(strings.Join(all, "; "), columnWidth)
}

// cut keeps the first n letters, on one line.
func cut(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// writeFull writes all lines of RabbitMQ, and those of Duepost that differ.
func writeFull(path string, verdicts []verdict) error {
	var b strings.Builder
	for _, v := range verdicts {
		fmt.Fprintf(&b, "%s\n", v.rule)
		for _, l := range v.theirs.lines {
			fmt.Fprintf(&b, "  %s: %s\n", l.label, l.value)
		}
		for _, d := range v.differing {
			fmt.Fprintf(&b, "  ! %s: RabbitMQ %s, Duepost %s\n", d.label, d.theirs, d.ours)
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write all lines: %w", err)
	}
	return nil
}
