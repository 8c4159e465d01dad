package main

import (
	"context"
	"errors"
	"os"

	"github.com/duepost/duepost/internal/demo"
)

// demoCmd plays the order story.
type demoCmd struct {
	Pace float64 `name:"pace" default:"1" help:"Stretch all times by this factor: 0.5 is twice as fast."`
}

// Run plays and judges.
func (c *demoCmd) Run(ctx context.Context, p process) error {
	if c.Pace < 0.1 || c.Pace > 100 {
		return &usageError{errors.New("--pace: must be from 0.1 to 100"), ""}
	}
	_, noColor := lookup(p.environ, "NO_COLOR")
	f, isFile := p.stdout.(*os.File)
	report, err := demo.Run(ctx, demo.Options{
		Out: p.stdout, Pace: c.Pace, Color: isFile && !noColor && isTerminal(f),
	})
	if err != nil {
		return err
	}
	if !report.OnTime() {
		return &hintedError{errors.New("demo: not everything was on time"), "", exitUnmet}
	}
	return nil
}
