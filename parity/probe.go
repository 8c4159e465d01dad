package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Limits of one rule.
const (
	awaitTimeout = 20 * time.Second
	awaitEvery   = 20 * time.Millisecond
)

// sideBySide is how many rules are played on a broker at once. Most of them wait most of the time.
const sideBySide = 6

// rule is a short name and the client code that observes what a broker does about it.
type rule struct {
	name    string
	observe func(*probe)
}

// line is one thing that was observed.
type line struct{ label, value string }

// row is what all brokers did about a rule. Those of theirs are in the order of the columns.
type row struct {
	rule   string
	theirs []observation
	ours   observation
}

// observation is all lines of a rule on one broker. broken says why it could not be observed.
type observation struct {
	broker string
	lines  []line
	broken string
}

// probe is a rule at work on a broker. Its methods end the rule when they cannot do what a rule
// takes for granted.
type probe struct {
	ctx    context.Context
	b      *broker
	prefix string // of names that only this rule uses
	seen   observation
	ending []func() // in reverse order
}

// note keeps a line. Labels are compared too, so they say what was done.
func (p *probe) note(label, format string, args ...any) {
	p.seen.lines = append(p.seen.lines, line{label, fmt.Sprintf(format, args...)})
}

// name makes a name that no other rule uses and that is the same on both brokers.
func (p *probe) name(short string) string { return p.prefix + "." + short }

// fatal ends the rule: what it is about could not be observed.
func (p *probe) fatal(format string, args ...any) {
	p.seen.broken = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// must ends the rule if err is not nil.
func (p *probe) must(err error) {
	if err != nil {
		p.fatal("%v", err)
	}
}

// eventually asks until the answer is yes; false means that the time was up.
func (p *probe) eventually(yes func() bool) bool {
	late := time.After(awaitTimeout)
	for !yes() {
		select {
		case <-p.ctx.Done():
			p.fatal("%v", p.ctx.Err())
		case <-late:
			return false
		case <-time.After(awaitEvery):
		}
	}
	return true
}

// pause lets a time go by that the rule is about.
func (p *probe) pause(d time.Duration) {
	select {
	case <-p.ctx.Done():
		p.fatal("%v", p.ctx.Err())
	case <-time.After(d):
	}
}

// observe plays the rule on a goroutine of its own, which fatal may end.
func observe(ctx context.Context, b *broker, r rule, prefix string) observation {
	p := &probe{ctx: ctx, b: b, prefix: prefix, seen: observation{broker: b.Name}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(p.ending) - 1; i >= 0; i-- {
				p.ending[i]()
			}
		}()
		r.observe(p)
	}()
	<-done
	if p.seen.broken == "" && len(p.seen.lines) == 0 {
		p.seen.broken = "nothing was observed"
	}
	return p.seen
}

// slug is the name in letters that may stand in any pattern or path.
func slug(name string) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// play plays the rules that match on all brokers. What could not be observed, because a busy machine
// let a broker wait too long, is played once more, alone, with other names.
func play(ctx context.Context, match *regexp.Regexp, brokers *brokers) []row {
	var rows []row
	var chosen []rule
	for _, r := range rules() {
		if match.MatchString(r.name) {
			chosen = append(chosen, r)
			rows = append(rows, row{rule: r.name, theirs: make([]observation, len(brokers.theirs))})
		}
	}
	var all sync.WaitGroup
	for column, b := range brokers.all() {
		next := make(chan int)
		for range sideBySide {
			all.Go(func() {
				for i := range next {
					rows[i].put(column, observe(ctx, b, chosen[i], slug(chosen[i].name)))
				}
			})
		}
		all.Go(func() {
			defer close(next)
			for i := range chosen {
				next <- i
			}
		})
	}
	all.Wait()
	for i := range rows {
		if len(unobserved(rows[i])) == 0 {
			continue
		}
		for column, b := range brokers.all() {
			all.Go(func() { rows[i].put(column, observe(ctx, b, chosen[i], slug(chosen[i].name)+"-again")) })
		}
		all.Wait()
	}
	return rows
}

// put keeps what the broker of a column did; the last column is ours.
func (r *row) put(column int, seen observation) {
	if column == len(r.theirs) {
		r.ours = seen
	} else {
		r.theirs[column] = seen
	}
}
