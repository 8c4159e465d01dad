package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const documents = "# Semantics\n\n## Queues\n\n| order of\nheaders | a | b |\n\n## Other\n\n| streams | | |\n"

func seen(lines ...line) observation { return observation{lines: lines} }

// TestJudge says which differences fail a run: those that are not documented, and documented ones
// that are none, or that no document has.
func TestJudge(t *testing.T) {
	t.Parallel()
	known := difference{"r", "a", "Queues", "order of headers"}
	one, other := seen(line{"a", "1"}), seen(line{"a", "2"})
	cases := []struct {
		name     string
		row      row
		known    []difference
		partly   bool
		faults   string
		sameness bool
	}{
		{"same", row{"r", one, one}, nil, false, "", true},
		{"not documented", row{"r", one, other}, nil, false, "not documented: a", false},
		{"documented", row{"r", one, other}, []difference{known}, false, "", false},
		{"documented for another line", row{"r", one, other}, []difference{{"r", "b", "Queues", "order of headers"}}, false,
			"not documented: a; documented as a difference, but there is none: b", false},
		{"documented, and no difference", row{"r", one, one}, []difference{known}, false,
			"documented as a difference, but there is none: a", true},
		{"documented, and not played", row{"x", one, one}, []difference{known}, true, "", true},
		{"under another heading", row{"r", one, other}, []difference{{"r", "a", "Other", "order of headers"}}, false,
			`no "order of headers" below the heading "Other" of the document`, false},
		{"under no heading", row{"r", one, other}, []difference{{"r", "a", "None", "streams"}}, false,
			`no "streams" below the heading "None" of the document`, false},
		{"one stopped early", row{"r", seen(line{"a", "1"}, line{"b", "1"}), one}, nil, false, "not documented: b", false},
		{"one did more", row{"r", one, seen(line{"a", "1"}, line{"b", "1"})}, nil, false, "not documented: b", false},
		{"a label twice", row{"r", seen(line{"a", "1"}, line{"a", "2"}), seen(line{"a", "1"}, line{"a", "3"})}, nil, false,
			"not documented: a", false},
		{"broken on both", row{"r", observation{broken: "x"}, observation{broken: "x"}}, nil, false,
			"not observed on RabbitMQ: x; not observed on Duepost: x", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			verdicts := judge([]row{c.row}, c.known, documents, !c.partly)
			var faults []string
			for _, v := range verdicts {
				faults = append(faults, v.faults...)
			}
			if diff := cmp.Diff(c.faults, strings.Join(faults, "; ")); diff != "" {
				t.Errorf("faults, -want +got:\n%s", diff)
			}
			if verdicts[0].same != c.sameness {
				t.Errorf("same: got %t, want %t", verdicts[0].same, c.sameness)
			}
			var out strings.Builder
			if err := report(&out, "RabbitMQ", verdicts); (err != nil) != (c.faults != "") {
				t.Errorf("report: %v\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), "r  ") && !strings.Contains(out.String(), "x  ") {
				t.Errorf("the table has no such row:\n%s", out.String())
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
	for _, d := range differencesOf("3.10") {
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
