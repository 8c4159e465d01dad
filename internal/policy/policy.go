package policy

import (
	"errors"
	"fmt"
	"iter"

	"github.com/duepost/duepost/internal/pattern"
)

// What a policy applies to.
const (
	Queues        = "queues"
	Exchanges     = "exchanges"
	All           = "all"
	ClassicQueues = "classic_queues"
	QuorumQueues  = "quorum_queues"
	Streams       = "streams" // known, and there are none
)

// maxName is the longest name of a policy in bytes: that of any name in AMQP.
const maxName = 255

// Policy is settings for all things of some kind whose names match a pattern.
type Policy struct {
	Name       string
	Pattern    string     // a regular expression; see package pattern
	ApplyTo    string     // one of the constants; empty means All
	Priority   float64    // of several that match, the highest counts
	Definition Definition // not empty
}

// Definition is settings by their names. Values are JSON's: int64, float64, string, bool, nil,
// []any, map[string]any. It is not changed once it is part of a policy.
type Definition map[string]any

// Fault is why a policy is refused, in RabbitMQ's words.
type Fault struct {
	Part string // what of the policy is wrong: "name", "pattern", "apply-to" or "definition"
	Key  string // which setting of the definition, "" if it is not one alone
	Text string
}

// Error returns the text.
func (f *Fault) Error() string { return f.Text }

// Validate returns the first fault of a policy, a *Fault, or nil.
func (p *Policy) Validate() error { return first(p.Faults()) }

// ValidateOperator is Validate for an operator policy, which may have fewer settings.
func (p *Policy) ValidateOperator() error { return first(p.OperatorFaults()) }

// Faults goes through all faults of a policy. Of its definition the settings that are known come
// first, in the order of their names, then those that are not.
func (p *Policy) Faults() iter.Seq[*Fault] { return p.faults(false) }

// OperatorFaults is Faults for an operator policy.
func (p *Policy) OperatorFaults() iter.Seq[*Fault] { return p.faults(true) }

func first(faults iter.Seq[*Fault]) error {
	for fault := range faults {
		return fault
	}
	return nil
}

func (p *Policy) faults(operator bool) iter.Seq[*Fault] {
	return func(yield func(*Fault) bool) {
		for _, fault := range [...]*Fault{checkName(p.Name), checkPattern(p.Pattern), checkApplyTo(p.ApplyTo)} {
			if fault != nil && !yield(fault) {
				return
			}
		}
		p.Definition.faults(operator)(yield)
	}
}

func checkName(name string) *Fault {
	if len(name) <= maxName {
		return nil
	}
	return &Fault{Part: "name", Text: fmt.Sprintf("name has %d bytes, %d are allowed", len(name), maxName)}
}

func checkPattern(text string) *Fault {
	if _, err := pattern.Compile(text); err != nil {
		return &Fault{Part: "pattern", Text: fmt.Sprintf(
			"pattern should be regular expression but is invalid: %v", errors.Unwrap(err))}
	}
	return nil
}

func checkApplyTo(applyTo string) *Fault {
	switch applyTo {
	case "", Queues, Exchanges, All, ClassicQueues, QuorumQueues, Streams:
		return nil
	}
	return &Fault{Part: "apply-to", Text: fmt.Sprintf("apply-to '%s' unrecognised; should be one of: "+
		"'queues', 'classic_queues', 'quorum_queues', 'streams', 'exchanges', or 'all'", applyTo)}
}

// Kind is what kind of thing a name names.
type Kind uint8

// The kinds of things that policies apply to.
const (
	ClassicQueue Kind = 1 << iota
	QuorumQueue
	Exchange
)

// appliesTo reports whether the policy is about things of that kind at all.
func (p *Policy) appliesTo(k Kind) bool {
	switch p.ApplyTo {
	case "", All:
		return true
	case Queues:
		return k != Exchange
	case ClassicQueues:
		return k == ClassicQueue
	case QuorumQueues:
		return k == QuorumQueue
	case Exchanges:
		return k == Exchange
	}
	return false
}
