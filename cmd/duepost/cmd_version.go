package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/duepost/duepost/internal/config"
)

// versionCmd prints what was built, and with what.
type versionCmd struct{}

// Run prints one line.
func (c *versionCmd) Run(p process) error { return printVersion(p.stdout) }

// versionFlag is the verb for those who look for it among the flags.
type versionFlag bool

// BeforeReset prints and ends, whatever else is on the command line.
func (f versionFlag) BeforeReset(app *kong.Kong) error {
	if err := printVersion(app.Stdout); err != nil {
		return err
	}
	app.Exit(exitDone)
	return nil
}

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "duepost %s %s %s/%s\n",
		config.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
