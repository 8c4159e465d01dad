package main

import (
	"fmt"
	"runtime"

	"github.com/duepost/duepost/internal/config"
)

// versionCmd prints what was built, and with what.
type versionCmd struct{}

// Run prints one line.
func (c *versionCmd) Run(p process) error {
	_, err := fmt.Fprintf(p.stdout, "duepost %s %s %s/%s\n",
		config.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
