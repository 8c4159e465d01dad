package main

import (
	"strings"
	"testing"
)

const passing = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":0.1}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p","Elapsed":0.1}
`

const skipping = `{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:3: needs javac\n"}
{"Action":"output","Package":"q","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q"}
`

const failing = `{"Action":"output","Package":"r","Test":"TestC","Output":"    c_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"r","Test":"TestC"}
{"Action":"output","Package":"r","Output":"FAIL\tr\t0.1s\n"}
{"Action":"fail","Package":"r"}
`

const panicking = `{"Action":"output","Package":"s","Test":"TestD","Output":"panic: boom\n"}
{"Action":"output","Package":"s","Output":"FAIL\ts\t0.1s\n"}
{"Action":"fail","Package":"s"}
`

const unbuilt = `{"Action":"build-output","ImportPath":"t","Output":"t.go:1: syntax error\n"}
{"Action":"build-fail","ImportPath":"t"}
`

func TestReport(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, events string
		ok, strict   bool
		contains     []string
	}{
		{"passing", passing, true, true, []string{"ok  \tp\t0.1s\n", "tests: 1 passed, 0 failed, 0 skipped\n"}},
		{"skipping", passing + skipping, true, false, []string{
			"skipped:\n  q TestB: b_test.go:3: needs javac\n", "1 passed, 0 failed, 1 skipped\n"}},
		{"failing", passing + failing, false, false, []string{
			"got 1, want 2", "failed:\n  r\n  r TestC\n", "1 passed, 1 failed, 0 skipped\n"}},
		{"panicking", passing + panicking, false, false, []string{"panic: boom", "failed:\n  s\n", "1 passed, 1 failed, 0 skipped"}},
		{"unbuilt", passing + unbuilt, false, false, []string{"syntax error", "failed:\n  build t\n"}},
		{"nothing ran", "", false, false, []string{"0 passed, 0 failed, 0 skipped\n"}},
		{"foreign line", "warning: x\n" + passing, true, true, []string{"warning: x\n"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			r.close()
			if got := r.ok(false); got != c.ok {
				t.Errorf("ok(lenient) = %v, want %v", got, c.ok)
			}
			if got := r.ok(true); got != c.strict {
				t.Errorf("ok(strict) = %v, want %v", got, c.strict)
			}
			for _, want := range c.contains {
				if !strings.Contains(out.String(), want) {
					t.Errorf("report lacks %q:\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "noise") {
				t.Errorf("report repeats what passing tests print:\n%s", out.String())
			}
		})
	}
}
