package pattern

import (
	"strings"
	"testing"
	"time"
)

func TestPatternMatchesAsInPerl(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "anything", true},
		{"rder", "orders", true},
		{"^rder", "orders", false},
		{"^orders$", "orders", true},
		{"^$", "", true},
		{"^$", "q", false},
		{`^(?!amq\.).*`, "orders", true},
		{`^(?!amq\.).*`, "amq.topic", false},
		{`.*(?<!\.dlq)$`, "orders", true},
		{`.*(?<!\.dlq)$`, "orders.dlq", false},
		{`^(?=.*eu)(?=.*prod)`, "prod.eu.1", true},
		{`^(?=.*eu)(?=.*prod)`, "test.eu.1", false},
		{`^(a+)-\1$`, "aa-aa", true},
		{`^(a+)-\1$`, "aa-a", false},
		{`^a++b`, "aaab", true},
		{`^(?i)ORDERS`, "orders", true},
		{`^.{5}$`, "äöüße", true},
		{`^(?!x).{5}$`, "äöüße", true},
		{`^[[:alpha:]]+\d{2}$`, "q17", true},
	} {
		p, err := Compile(tt.pattern)
		if err != nil {
			t.Errorf("Compile(%q): %v", tt.pattern, err)
			continue
		}
		if got := p.Matches(tt.name); got != tt.want {
			t.Errorf("%q matches %q: got %t, want %t", tt.pattern, tt.name, got, tt.want)
		}
		if p.String() != tt.pattern {
			t.Errorf("got text %q, want %q", p, tt.pattern)
		}
	}
}

func TestCompileSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"(":         "missing closing )",
		"(?=x":      "missing closing )",
		"[a":        "[]",
		"*":         "repetition operator",
		`\`:         `\`,
		"(?R)":      "(?",
		"(*ACCEPT)": "repetition operator",
	} {
		_, err := Compile(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "compile pattern: ") {
			t.Errorf("Compile(%q): got %v, want an error with %q", text, err, want)
		}
	}
}

// TestMatchEnds has a pattern try more ways than there is time for.
func TestMatchEnds(t *testing.T) {
	t.Parallel()
	p, err := Compile(`^(?!x)(a+)+\1$`)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if p.Matches(strings.Repeat("a", 200) + "b") {
		t.Error("matched")
	}
	if took := time.Since(start); took > 50*matchTimeout {
		t.Errorf("took %v, want about %v", took, matchTimeout)
	}
}
