package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/duepost/duepost/internal/store"
)

// storeCheckCmd verifies a data directory.
type storeCheckCmd struct {
	Dir  string `arg:"" type:"existingdir" help:"Data directory. No broker may have it open; nothing in it is changed."`
	JSON bool   `name:"json" help:"Print the report as JSON."`
}

// Run prints what is there and what is damaged. Damage is exit code 4.
func (c *storeCheckCmd) Run(p process) error {
	rep, err := store.Check(store.ReadOnly(), c.Dir)
	if err != nil {
		return offline(err)
	}
	if c.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		err = e.Encode(rep)
	} else {
		err = printReport(p.stdout, rep)
	}
	if err == nil && len(rep.Damages) > 0 {
		err = &hintedError{
			fmt.Errorf("check store in %s: damage in %d places", c.Dir, len(rep.Damages)),
			"the broker starts all the same, skips what is damaged and serves the rest; a copy of the directory keeps what could be looked at later",
			exitUnmet,
		}
	}
	return err
}

// offline explains why a directory cannot be looked at.
func offline(err error) error {
	if errors.Is(err, store.ErrLocked) {
		return &hintedError{err, "stop the broker that uses it, or look at a copy", exitRefused}
	}
	return err
}

// printReport prints a report for people.
func printReport(w io.Writer, r *store.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "log: %d segments, %d bytes, %d records in %d frames; %d spare files\n",
		r.Segments, r.LogBytes, r.Records, r.Frames, r.Spares)
	fmt.Fprintf(&b, "runs: %d, %d bytes, %d records read\n", r.Runs, r.RunBytes, r.RunRecords)
	for _, name := range r.Unnamed {
		fmt.Fprintf(&b, "  %s is not in use, the next start removes it\n", name)
	}
	fmt.Fprintf(&b, "definitions: %d\n", r.Definitions)
	fmt.Fprintf(&b, "pending: %d, %d bytes\n", r.Pending.Count, r.Pending.Bytes)
	for _, ex := range slices.Sorted(maps.Keys(r.Exchanges)) {
		fmt.Fprintf(&b, "  exchange %d: %d, %d bytes\n", ex, r.Exchanges[ex].Count, r.Exchanges[ex].Bytes)
	}
	fmt.Fprintf(&b, "queues with ready messages: %d\n", len(r.Queues))
	for _, q := range slices.Sorted(maps.Keys(r.Queues)) {
		fmt.Fprintf(&b, "  queue %d: %d, %d bytes\n", q, r.Queues[q].Count, r.Queues[q].Bytes)
	}
	if r.Cut != nil {
		fmt.Fprintf(&b, "torn tail: %s at offset %d; it was never confirmed\n", r.Cut.File, r.Cut.Offset)
	}
	fmt.Fprintf(&b, "damage: %d\n", len(r.Damages))
	for _, d := range r.Damages {
		fmt.Fprintf(&b, "  %s at offset %d, %d bytes: %s", d.File, d.Offset, d.Length, d.Reason)
		if d.Records > 0 {
			fmt.Fprintf(&b, "; %d records lost", d.Records)
		}
		if d.Control {
			b.WriteString("; what had ended may be seen again")
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// storeDumpCmd prints the records of a data directory.
type storeDumpCmd struct {
	Dir    string   `arg:"" type:"existingdir" help:"Data directory. No broker may have it open; nothing in it is changed."`
	From   string   `name:"from" placeholder:"FILE[:OFFSET]" help:"Begin there. The log comes first, oldest file first, then the runs."`
	Limit  int      `name:"limit" help:"Print so many records. Default: all."`
	Seqs   []uint64 `name:"keys" placeholder:"SEQ" help:"Only records about these delayed entries, by the sequence number of their keys."`
	Bodies bool     `name:"bodies" help:"Print bodies and the values of definitions, in base64. Definitions have password hashes."`
}

// Run prints one JSON object per line.
func (c *storeDumpCmd) Run(p process) error {
	o := store.DumpOptions{File: c.From, Limit: c.Limit, Seqs: c.Seqs, Bodies: c.Bodies}
	if file, offset, ok := strings.Cut(c.From, ":"); ok {
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || n < 0 {
			return &usageError{fmt.Errorf("--from: %q is not FILE:OFFSET", c.From), "duepost store dump --help"}
		}
		o.File, o.Offset = file, n
	}
	if c.Limit < 0 {
		return &usageError{fmt.Errorf("--limit: is %d, must not be negative", c.Limit), "duepost store dump --help"}
	}
	e := json.NewEncoder(p.stdout)
	return offline(store.Dump(store.ReadOnly(), c.Dir, o, func(r *store.Dumped) error { return e.Encode(r) }))
}
