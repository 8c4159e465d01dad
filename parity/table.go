package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// columnWidth is how many letters of what a broker did the table shows.
const columnWidth = 60

// table is what is printed: a row for each rule, and one for each of its lines about which not all
// brokers agree.
type table struct {
	peers    []string // names of their columns
	verdicts []verdict
}

// print prints the table and ends with an error if anything is not as it must be.
func (t table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "rule\t%s\tDuepost\tverdict\n", strings.Join(t.peers, "\t"))
	for _, v := range t.verdicts {
		for range len(t.peers) - len(v.theirs) { // an entry of the list that no rule has
			v.theirs = append(v.theirs, observation{})
		}
		fmt.Fprintf(out, "%s", v.rule)
		for _, o := range append(v.theirs[:len(v.theirs):len(v.theirs)], v.ours) {
			fmt.Fprintf(out, "\t%s", o.short())
		}
		fmt.Fprintf(out, "\t%s\n", t.word(v))
		for _, c := range v.differing {
			fmt.Fprintf(out, "  %s", cut(c.label, 40))
			for _, value := range append(c.theirs[:len(c.theirs):len(c.theirs)], c.ours) {
				fmt.Fprintf(out, "\t%s", cut(value, columnWidth))
			}
			fmt.Fprintf(out, "\t  %s\n", t.wordOfLine(c))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	t.printFaults(w)
	return t.count(w)
}

// word is the last column of a rule.
func (t table) word(v verdict) string {
	if len(v.faults) > 0 {
		return "FAIL"
	}
	if len(v.documented) > 0 {
		places := make([]string, len(v.documented))
		for i, d := range v.documented {
			places[i] = d.heading + ": " + d.words
		}
		return "documented: " + cut(strings.Join(places, "; "), columnWidth)
	}
	words := "same"
	for i, c := range v.differing {
		switch word := t.wordOfLine(c); {
		case i == 0:
			words = word
		case word != words:
			return "same, line by line, as one of them"
		}
	}
	return words
}

// wordOfLine says whom we do as where not all do the same.
func (t table) wordOfLine(c comparison) string {
	if like := c.like(); like >= 0 {
		return "same as " + t.peers[like]
	}
	return "as none of them"
}

// printFaults prints each with all that was observed about it.
func (t table) printFaults(w io.Writer) {
	for _, v := range t.verdicts {
		for _, fault := range v.faults {
			fmt.Fprintf(w, "FAIL %s: %s\n", v.rule, fault)
		}
		if len(v.faults) == 0 {
			continue
		}
		for _, c := range v.differing {
			fmt.Fprintf(w, "     %s\n", c.label)
			for i, value := range c.theirs {
				fmt.Fprintf(w, "       %s: %s\n", t.peers[i], value)
			}
			fmt.Fprintf(w, "       Duepost: %s\n", c.ours)
		}
	}
}

// count prints how many rules ended how.
func (t table) count(w io.Writer) error {
	same, asOne, documented, failed := 0, 0, 0, 0
	for _, v := range t.verdicts {
		switch {
		case len(v.faults) > 0:
			failed++
		case len(v.documented) > 0:
			documented++
		case len(v.differing) > 0:
			asOne++
		default:
			same++
		}
	}
	fmt.Fprintf(w, "parity with %s: %d rules, %d same", strings.Join(t.peers, " and "), len(t.verdicts), same)
	if len(t.peers) > 1 {
		fmt.Fprintf(w, ", %d same as one of them where they differ", asOne)
	}
	fmt.Fprintf(w, ", %d documented differences, %d failed\n", documented, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d rules failed", failed, len(t.verdicts))
	}
	return nil
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

// writeFull writes all lines of the first RabbitMQ, and those about which not all agree.
func (t table) writeFull(path string) error {
	var b strings.Builder
	for _, v := range t.verdicts {
		fmt.Fprintf(&b, "%s\n", v.rule)
		if len(v.theirs) > 0 {
			for _, l := range v.theirs[0].lines {
				fmt.Fprintf(&b, "  %s: %s\n", l.label, l.value)
			}
		}
		for _, c := range v.differing {
			fmt.Fprintf(&b, "  ! %s (%s)\n", c.label, t.wordOfLine(c))
			for i, value := range c.theirs {
				fmt.Fprintf(&b, "      %s: %s\n", t.peers[i], value)
			}
			fmt.Fprintf(&b, "      Duepost: %s\n", c.ours)
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write all lines: %w", err)
	}
	return nil
}
