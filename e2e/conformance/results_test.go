package main

import (
	"errors"
	"strings"
	"testing"
)

const good = "=== RUN   TestA\n    a_test.go:1: hello\n--- PASS: TestA (0.00s)\n"

func TestJudge(t *testing.T) {
	t.Parallel()
	broken := errors.New("exit status 1")
	cases := []struct {
		name, output      string
		wanted            []string
		testsErr, stopErr error
		ok                bool
		contains          string
	}{
		{"all pass", good, []string{"TestA"}, nil, nil, true, "conformance: 1 passed, 0 failed\n"},
		{"one fails", good + "=== RUN   TestB\n    b_test.go:2: got 3\n--- FAIL: TestB (0.00s)\nFAIL\n",
			[]string{"TestA", "TestB"}, broken, nil, false, "got 3"},
		{"one skips itself", good + "=== RUN   TestB\n--- SKIP: TestB (0.00s)\n",
			[]string{"TestA", "TestB"}, nil, nil, false, "not passed: TestB: SKIP"},
		{"cut off", good + "=== RUN   TestB\npanic: boom\n",
			[]string{"TestA", "TestB"}, broken, nil, false, "not passed: TestB: DID NOT END"},
		{"leak found after the tests", good + "leak\n", []string{"TestA"}, broken, nil, false, "1 passed"},
		{"broker does not stop", good, []string{"TestA"}, nil, broken, false, "1 passed"},
		{"nothing ran", "", nil, nil, nil, false, "0 passed, 0 failed"},
		{"subtests", "=== RUN   TestA\n=== RUN   TestA/x\n    --- PASS: TestA/x (0.00s)\n--- PASS: TestA (0.00s)\n",
			[]string{"TestA"}, nil, nil, true, "1 passed, 0 failed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newResults(c.wanted)
			for piece := range strings.SplitSeq(c.output, "e") { // pieces that are no lines
				r.Write([]byte(piece))
				r.Write([]byte("e"))
			}
			r.Write([]byte("\n"))
			var out strings.Builder
			err := r.judge(&out, []leftOut{{"TestZ", "calls rabbitmqctl"}}, c.testsErr, c.stopErr)
			if (err == nil) != c.ok {
				t.Errorf("judge: %v, want ok = %v", err, c.ok)
			}
			for _, want := range []string{c.contains, "TestZ: calls rabbitmqctl"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("report lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestLeftOutGivesReasons(t *testing.T) {
	t.Parallel()
	list, err := parseLeftOut(leftOutText)
	if err != nil || len(list) == 0 {
		t.Errorf("own list: %d entries, %v", len(list), err)
	}
	for _, text := range []string{"TestA", "TestA:", "TestA: "} {
		if _, err := parseLeftOut(text); err == nil {
			t.Errorf("%q: taken without a reason", text)
		}
	}
}
