package amqp

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScopeFollowsFromTheCode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		scope Scope
		codes []uint16
	}{
		{ScopeChannel, []uint16{ContentTooLarge, NoRoute, NoConsumers, AccessRefused, NotFound,
			ResourceLocked, PreconditionFailed}},
		{ScopeConnection, []uint16{ConnectionForced, InvalidPath, FrameError, SyntaxError,
			CommandInvalid, ChannelError, UnexpectedFrame, ResourceError, NotAllowed,
			NotImplemented, InternalError, 999}},
	} {
		for _, code := range tc.codes {
			if got := (&Error{Code: code}).Scope(); got != tc.scope {
				t.Errorf("%d: got %v, want %v", code, got, tc.scope)
			}
		}
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	var e *Error
	if !errors.As(Errorf(NotFound, "no queue '%s' in vhost '/'", "q"), &e) {
		t.Fatal("Errorf returns no *Error")
	}
	if got, want := e.ReplyText(), "NOT_FOUND - no queue 'q' in vhost '/'"; got != want {
		t.Errorf("reply text: got %q, want %q", got, want)
	}
	if got, want := e.Error(), "404 NOT_FOUND - no queue 'q' in vhost '/'"; got != want {
		t.Errorf("error: got %q, want %q", got, want)
	}
	e.Text = strings.Repeat("ü", 300)
	if got := e.ReplyText(); len(got) > MaxShortStr || !utf8.ValidString(got) {
		t.Errorf("reply text of %d octets, valid UTF-8 %v", len(got), utf8.ValidString(got))
	} else if !strings.HasSuffix(got, "ü...") {
		t.Errorf("reply text that was cut: %q, want dots at the end", got)
	}
	e.Text = strings.Repeat("x", MaxShortStr-len("NOT_FOUND - "))
	if got := e.ReplyText(); got != "NOT_FOUND - "+e.Text {
		t.Errorf("reply text that just fits: %q", got)
	}
}

func TestEveryCodeHasAName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for code := uint16(200); code < 600; code++ {
		if name := CodeName(code); !strings.HasPrefix(name, "CODE_") {
			seen[name] = true
		}
	}
	if len(seen) != 19 {
		t.Errorf("%d codes have a name of their own, want 19: %v", len(seen), seen)
	}
}

func TestShortAndLongStrings(t *testing.T) {
	t.Parallel()
	b := AppendLongStr(AppendShortStr(nil, "short"), []byte("long"))
	s, rest, ok := CutShortStr(b)
	if !ok || string(s) != "short" {
		t.Fatalf("short string: got %q %v", s, ok)
	}
	l, rest, ok := CutLongStr(rest)
	if !ok || string(l) != "long" || len(rest) != 0 {
		t.Fatalf("long string: got %q %v, %d octets left", l, ok, len(rest))
	}
	for n := range 6 {
		if _, _, ok := CutShortStr(b[:n]); ok {
			t.Errorf("short string out of %d octets", n)
		}
	}
	for n := range 8 {
		if _, _, ok := CutLongStr(b[6 : 6+n]); ok {
			t.Errorf("long string out of %d octets", n)
		}
	}
}
