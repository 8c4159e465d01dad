package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// difference is a line of a rule about which Duepost differs from RabbitMQ 3.10 and may.
type difference struct {
	rule, label string // a label that ends in * is all that begin so, and of those there may be none
	// heading and words say where docs/SEMANTICS.md documents it: the words stand in the first
	// column of a row, or in a sentence, below the heading.
	heading, words string
}

// verdict is what is to be said about a row.
type verdict struct {
	row
	differing  []comparison // lines about which not all brokers agree
	documented []difference // those that its lines needed
	faults     []string     // what makes the run fail
}

// comparison is a label with what each broker did; "-" if it did not come so far.
type comparison struct {
	label  string
	theirs []string // in the order of the columns, 3.10 first
	ours   string
}

// like is the first column that has what we have, -1 if none has it.
func (c comparison) like() int { return slices.Index(c.theirs, c.ours) }

// judge compares the rows. complete means that all rules were played, so that a difference that
// none of them shows is one too many. To do as 3.10 is never a difference; to do as another version
// is one to a run that has only 3.10, so that it must be documented too.
func judge(rows []row, known []difference, documents string, complete bool) []verdict {
	used := make([]bool, len(known))
	var verdicts []verdict
	for _, r := range rows {
		v := verdict{row: r, differing: differing(r), faults: unobserved(r)}
		for _, c := range v.differing {
			if c.like() == 0 {
				continue
			}
			at := find(known, r.rule, c.label)
			if at < 0 {
				v.faults = append(v.faults, "not documented: "+c.label)
				continue
			}
			if !used[at] && c.like() < 0 {
				v.documented = append(v.documented, known[at])
			}
			used[at] = true
		}
		verdicts = append(verdicts, v)
	}
	return append(verdicts, stale(known, used, documents, complete)...)
}

// unobserved names the brokers that a rule could not be played on.
func unobserved(r row) (faults []string) {
	for _, o := range append(slices.Clone(r.theirs), r.ours) {
		if o.broken != "" {
			faults = append(faults, "not observed on "+o.broker+": "+o.broken)
		}
	}
	return faults
}

// stale finds entries that no row needs, and entries that the document does not have.
func stale(known []difference, used []bool, documents string, complete bool) (verdicts []verdict) {
	for i, d := range known {
		var faults []string
		if complete && !used[i] && !strings.HasSuffix(d.label, "*") {
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
		prefix, open := strings.CutSuffix(d.label, "*")
		if d.rule == rule && (d.label == label || open && strings.HasPrefix(label, prefix)) {
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

// differing lines up the lines by label, of several with one label the first with the first, and
// keeps those about which not all agree.
func differing(r row) (found []comparison) {
	type key struct {
		label string
		nth   int
	}
	at := map[key]int{}
	var all []comparison
	place := func(column int, lines []line) {
		times := map[string]int{}
		for _, l := range lines {
			k := key{l.label, times[l.label]}
			times[l.label]++
			if _, ok := at[k]; !ok {
				at[k] = len(all)
				all = append(all, comparison{l.label, slices.Repeat([]string{"-"}, len(r.theirs)), "-"})
			}
			if c := &all[at[k]]; column < len(r.theirs) {
				c.theirs[column] = l.value
			} else {
				c.ours = l.value
			}
		}
	}
	for column, o := range r.theirs {
		place(column, o.lines)
	}
	place(len(r.theirs), r.ours.lines)
	for _, c := range all {
		if slices.ContainsFunc(c.theirs, func(value string) bool { return value != c.ours }) {
			found = append(found, c)
		}
	}
	return found
}
