package daemon

import (
	"os"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/definitions"
)

// site is what definitions are taken from and brought into.
func (d *Daemon) site() definitions.Site {
	return definitions.Site{Broker: d.broker, Users: d.users, Version: config.Version()}
}

// importDefinitions brings in the file that the configuration names. It does so at each start: what
// is there already stays, so that a second time changes nothing.
func (d *Daemon) importDefinitions() error {
	name := d.cfg.Definitions
	if name == "" {
		return nil
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return &StartError{Setting: "definitions", Value: name, Err: err,
			hint: "the file must be readable by this user; see --definitions"}
	}
	notes, err := definitions.Import(d.site(), file)
	for _, note := range notes {
		d.log.Warn("definitions not imported to the letter", "err", note)
	}
	if err != nil {
		return &StartError{Setting: "definitions", Value: name, Err: err,
			hint: "correct the file, or start without --definitions"}
	}
	d.log.Info("definitions imported", "file", name)
	return nil
}
