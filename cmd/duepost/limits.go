package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/management"
)

type vhostSetLimitsCmd struct {
	Name   string `arg:"" help:"The virtual host."`
	Limits string `arg:"" help:"JSON object, as in '{\"max-connections\": 100, \"max-queues\": 50}'; -1 is no limit."`
}

// Run sets the limits that are named and leaves the others.
func (c *vhostSetLimitsCmd) Run(ctx context.Context, p process, in *vhostCmd) error {
	return in.setLimits(ctx, p, "vhost", c.Name, c.Limits)
}

type vhostClearLimitsCmd struct {
	Name string `arg:"" help:"The virtual host."`
}

// Run lifts the limits there are.
func (c *vhostClearLimitsCmd) Run(ctx context.Context, p process, in *vhostCmd) error {
	return in.clearLimits(ctx, p, "vhost", c.Name, "max-connections", "max-queues")
}

type userSetLimitsCmd struct {
	Name   string `arg:"" help:"The user."`
	Limits string `arg:"" help:"JSON object, as in '{\"max-connections\": 10, \"max-channels\": 50}'; -1 is no limit."`
}

// Run sets the limits that are named and leaves the others.
func (c *userSetLimitsCmd) Run(ctx context.Context, p process, in *userCmd) error {
	return in.setLimits(ctx, p, "user", c.Name, c.Limits)
}

type userClearLimitsCmd struct {
	Name string `arg:"" help:"The user."`
}

// Run lifts the limits there are.
func (c *userClearLimitsCmd) Run(ctx context.Context, p process, in *userCmd) error {
	return in.clearLimits(ctx, p, "user", c.Name, "max-connections", "max-channels")
}

// setLimits sets limits of a user or a vhost, given as the text of a JSON object.
func (f *apiFlags) setLimits(ctx context.Context, p process, kind, name, text string) error {
	var limits map[string]json.Number
	if err := json.Unmarshal([]byte(text), &limits); err != nil {
		return &usageError{fmt.Errorf("limits: is no JSON object of numbers: %w", err), `'{"max-connections": 50}' is one`}
	}
	for _, limit := range slices.Sorted(maps.Keys(limits)) {
		err := f.put(ctx, management.Path(kind+"-limits", name, limit), map[string]any{"value": limits[limit]})
		if err != nil {
			return fmt.Errorf("limit %s of %s %q: %w", limit, kind, name, err)
		}
	}
	f.say(p, "limited %s %q: %s", kind, name, text)
	return nil
}

func (f *apiFlags) clearLimits(ctx context.Context, p process, kind, name string, limits ...string) error {
	for _, limit := range limits {
		if err := f.remove(ctx, management.Path(kind+"-limits", name, limit), "limit "+limit); err != nil {
			return fmt.Errorf("clear limits of %s %q: %w", kind, name, err)
		}
	}
	f.say(p, "%s %q has no limits", kind, name)
	return nil
}
