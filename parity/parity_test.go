package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const documents = "# Semantics\n\n## Queues\n\n| order of\nheaders | a | b |\n\n## Other\n\n| streams | | |\n"

func seen(lines ...line) observation { return observation{lines: lines} }

func seenBy(all ...observation) []observation { return all }

// TestJudge says which differences fail a run: those that are not documented, and documented ones
// that are none, or that no document has. What two versions of RabbitMQ do otherwise is the same
// as one of them.
func TestJudge(t *testing.T) {
	t.Parallel()
	known := []difference{{"r", "a", "Queues", "order of headers"}}
	about := func(label, heading, words string) []difference { return []difference{{"r", label, heading, words}} }
	one, other, third := seen(line{"a", "1"}), seen(line{"a", "2"}), seen(line{"a", "3"})
	more, broken := seen(line{"a", "1"}, line{"b", "1"}), func(who string) observation {
		return observation{broker: who, broken: "x"}
	}
	cases := []struct {
		name   string
		row    row
		known  []difference
		partly bool
		word   string // of the table
		faults string
	}{
		{"same", row{"r", seenBy(one), one}, nil, false, "same", ""},
		{"not documented", row{"r", seenBy(one), other}, nil, false, "FAIL", "not documented: a"},
		{"documented", row{"r", seenBy(one), other}, known, false, "documented: Queues: order of headers", ""},
		{"documented for another line", row{"r", seenBy(one), other}, about("b", "Queues", "order of headers"), false,
			"FAIL", "not documented: a; documented as a difference, but there is none: b"},
		{"documented, and no difference", row{"r", seenBy(one), one}, known, false,
			"same", "documented as a difference, but there is none: a"},
		{"documented for labels that begin so", row{"r", seenBy(one), other}, about("*", "Queues", "order of headers"), false,
			"documented: Queues: order of headers", ""},
		{"documented for labels of which there are none", row{"r", seenBy(one), one}, about("b*", "Queues", "order of headers"), false,
			"same", ""},
		{"documented, and not played", row{"x", seenBy(one), one}, known, true, "same", ""},
		{"under another heading", row{"r", seenBy(one), other}, about("a", "Other", "order of headers"), false,
			"documented: Other: order of headers", `no "order of headers" below the heading "Other" of the document`},
		{"under no heading", row{"r", seenBy(one), other}, about("a", "None", "streams"), false,
			"documented: None: streams", `no "streams" below the heading "None" of the document`},
		{"one stopped early", row{"r", seenBy(more), one}, nil, false, "FAIL", "not documented: b"},
		{"one did more", row{"r", seenBy(one), more}, nil, false, "FAIL", "not documented: b"},
		{"a label twice", row{"r", seenBy(seen(line{"a", "1"}, line{"a", "2"})), seen(line{"a", "1"}, line{"a", "3"})},
			nil, false, "FAIL", "not documented: a"},
		{"broken on both", row{"r", seenBy(broken("RabbitMQ")), broken("Duepost")}, nil, false,
			"FAIL", "not observed on RabbitMQ: x; not observed on Duepost: x"},
		{"same as both", row{"r", seenBy(one, one), one}, nil, false, "same", ""},
		{"as the first", row{"r", seenBy(one, other), one}, nil, false, "same as 3.10", ""},
		{"as the second", row{"r", seenBy(one, other), other}, known, false, "same as 4.3", ""},
		{"as the second, not documented", row{"r", seenBy(one, other), other}, nil, false, "FAIL", "not documented: a"},
		{"as neither", row{"r", seenBy(one, other), third}, known, false, "documented: Queues: order of headers", ""},
		{"each line as another", row{"r", seenBy(seen(line{"a", "1"}, line{"b", "1"}), seen(line{"a", "2"}, line{"b", "2"})),
			seen(line{"a", "2"}, line{"b", "1"})}, known, false, "same, line by line, as one of them", ""},
		{"broken on the second", row{"r", seenBy(one, broken("RabbitMQ 4.3")), one}, nil, false,
			"FAIL", "not observed on RabbitMQ 4.3: x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table := table{[]string{"3.10", "4.3"}[:len(c.row.theirs)], judge([]row{c.row}, c.known, documents, !c.partly)}
			var faults []string
			for _, v := range table.verdicts {
				faults = append(faults, v.faults...)
			}
			if diff := cmp.Diff(c.faults, strings.Join(faults, "; ")); diff != "" {
				t.Errorf("faults, -want +got:\n%s", diff)
			}
			if got := table.word(table.verdicts[0]); got != c.word {
				t.Errorf("verdict: got %q, want %q", got, c.word)
			}
			var out strings.Builder
			if err := table.print(&out); (err != nil) != (c.faults != "") {
				t.Errorf("print: %v\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), "\n"+c.row.rule+"  ") || !strings.Contains(out.String(), c.word) {
				t.Errorf("the table has no row with the verdict:\n%s", out.String())
			}
		})
	}
}

// TestRulesAndDifferences holds the lists against each other and against the document.
func TestRulesAndDifferences(t *testing.T) {
	t.Parallel()
	names, slugs := map[string]bool{}, map[string]bool{}
	for _, r := range rules() {
		if names[r.name] || slugs[slug(r.name)] {
			t.Errorf("two rules are named %q or like it: their queues would be the same", r.name)
		}
		names[r.name], slugs[slug(r.name)] = true, true
	}
	document, err := os.ReadFile("../docs/SEMANTICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences() {
		if !names[d.rule] {
			t.Errorf("difference of %q: there is no such rule", d.rule)
		}
		if !isDocumented(string(document), d) {
			t.Errorf("difference of %q: no %q below %q", d.rule, d.words, d.heading)
		}
	}
}

// TestMissing skips, or fails where nothing may be skipped. The environment is the process's, so it
// is not parallel.
func TestMissing(t *testing.T) {
	for value, fails := range map[string]bool{"": false, "all": true} {
		t.Setenv("DUEPOST_REQUIRE", value)
		var out strings.Builder
		if err := missing(&out); (err != nil) != fails {
			t.Errorf("DUEPOST_REQUIRE=%s: %v", value, err)
		}
		if !fails && !strings.Contains(out.String(), "SKIP") {
			t.Errorf("skip is not loud: %q", out.String())
		}
	}
}
