package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/duepost/duepost/internal/storebench"
)

// storeCmd works on a store directly, without a broker.
type storeCmd struct {
	Bench storeBenchCmd `cmd:"" help:"Measure the store at scale: fill it, kill it, open it, empty it."`
	Check storeCheckCmd `cmd:"" help:"Verify a data directory offline and count what is in it."`
	Dump  storeDumpCmd  `cmd:"" help:"Print the records of a data directory offline, one JSON object per line."`
}

// storeBenchCmd measures the store. The defaults are those of docs/BENCHMARKS.md.
type storeBenchCmd struct {
	Dir      string        `arg:"" type:"path" help:"Directory to measure in; made, and must be empty. 100 million messages of 256 bytes need 35 GB."`
	Messages int           `name:"messages" short:"n" default:"10000000" help:"Delayed messages."`
	Size     int           `name:"size" default:"256" help:"Bytes of a body."`
	Writers  int           `name:"writers" default:"8" help:"Concurrent publishers."`
	InFlight int           `name:"in-flight" default:"1000" help:"Messages in flight, all publishers together."`
	Within   time.Duration `name:"within" default:"1h" help:"Due instants are spread over this; 0 makes all due at one instant."`
	Burst    int           `name:"burst" default:"1000000" help:"More messages, due at one instant before all others."`
	Release  int           `name:"release" help:"Release so many at the end. Default: all."`
	Rate     int           `name:"rate" help:"Instead: publish so many a second, with delays of 5ms to --within, and show how late they are released."`
	For      time.Duration `name:"for" default:"30s" help:"How long (--rate)."`
	Keep     bool          `name:"keep" help:"Leave the directory as it is at the end."`
}

// Run prints the report as JSON.
func (c *storeBenchCmd) Run(ctx context.Context, p process) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	names, err := os.ReadDir(c.Dir)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	if len(names) > 0 {
		return &usageError{fmt.Errorf("directory %s is not empty", c.Dir), "duepost store bench --help"}
	}
	r, err := c.measure(ctx)
	if err == nil {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	}
	if !c.Keep {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	return err
}

func (c *storeBenchCmd) measure(ctx context.Context) (any, error) {
	if c.Rate > 0 {
		return storebench.MeasureLateness(ctx, storebench.LatenessConfig{
			Dir: c.Dir, Rate: c.Rate, Size: c.Size, Shortest: 5 * time.Millisecond, Longest: c.Within,
			Warmup: c.For / 4, Duration: c.For,
		})
	}
	return storebench.Run(ctx, storebench.Config{
		Dir: c.Dir, Count: c.Messages, Size: c.Size, Writers: c.Writers, Group: max(1, c.InFlight/max(1, c.Writers)),
		Within: c.Within, Burst: c.Burst, Release: c.Release,
	})
}
