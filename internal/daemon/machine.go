package daemon

import (
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// Machine is what a broker stands on, for tests that need another. The zero value is this machine.
type Machine struct {
	// Disk is where everything durable is. Default the file system.
	Disk store.FS
	// Clock says what time it is. Default the machine's. Who sets it calls [Daemon.ClockSet].
	Clock delay.Clock
	// SegmentBytes is the size of a log file. A small one starts faster, on slow disks by tens
	// of milliseconds. Default that of the store.
	SegmentBytes int64
}

func (m Machine) withDefaults() Machine {
	if m.Disk == nil {
		m.Disk = store.OSFS{}
	}
	if m.Clock == nil {
		m.Clock = delay.SystemClock{}
	}
	return m
}

// ClockSet has everything that waits for an instant look at the clock anew.
func (d *Daemon) ClockSet() { d.alarms.Recheck() }
