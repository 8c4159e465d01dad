// Package pattern is about the regular expressions by which operators name things: the patterns
// of policies and permissions. It does not know what is named.
//
// RabbitMQ's are Perl's. Those that Go's regexp takes run there, in time linear in the name. The
// others, of which "^(?!amq\.)" is in many a policy, run in an engine that goes back and forth,
// for a bounded time.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// matchTimeout bounds a match in the engine that goes back and forth. Names have at most 255
// bytes, for which any pattern written in good faith needs microseconds.
const matchTimeout = 100 * time.Millisecond

// Pattern is a compiled regular expression. It may be used concurrently.
type Pattern struct {
	text   string
	linear *regexp.Regexp  // one of these two is set
	perl   *regexp2.Regexp //
}

// Compile refuses what is no regular expression, and the little of Perl's that neither engine
// has: recursion and control verbs. What its error wraps is the fault alone.
func Compile(text string) (*Pattern, error) {
	if linear, err := regexp.Compile(text); err == nil {
		return &Pattern{text: text, linear: linear}, nil
	}
	perl, err := regexp2.Compile(text, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("compile pattern: %w", errors.New(
			strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
	}
	perl.MatchTimeout = matchTimeout
	return &Pattern{text: text, perl: perl}, nil
}

// String returns the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Matches reports whether the pattern matches anywhere in the name. A match that takes too long
// is none, as in RabbitMQ.
func (p *Pattern) Matches(name string) bool {
	if p.linear != nil {
		return p.linear.MatchString(name)
	}
	ok, err := p.perl.MatchString(name)
	return err == nil && ok
}
