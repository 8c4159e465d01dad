package policy

import "fmt"

// Mirrored classic queues are no more since RabbitMQ 4, and one broker has nowhere to mirror to.
// Their settings are checked, because exported definitions have them, and mean nothing.
const (
	mirrorMode   = "ha-mode"
	mirrorParams = "ha-params"
)

// mirroring are the settings of mirrored queues. Their values depend on each other: see
// checkMirroring.
func mirroring() []setting {
	names := [...]string{mirrorMode, mirrorParams, "ha-promote-on-failure", "ha-promote-on-shutdown",
		"ha-sync-batch-size", "ha-sync-mode"}
	var all []setting
	for _, name := range names {
		all = append(all, setting{
			name: name, valid: func(any) bool { return true }, merge: operators, lacked: QuorumQueue,
		})
	}
	return all
}

// checkMirroring returns what is wrong with the settings of mirroring, or "".
func (d Definition) checkMirroring() string {
	mode, ok := d[mirrorMode]
	if !ok {
		for _, s := range mirroring() {
			if _, ok := d[s.name]; ok {
				return "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
			}
		}
		return ""
	}
	if why := checkMirrors(mode, d); why != "" {
		return why
	}
	if v, ok := d["ha-sync-batch-size"]; ok && !atLeast(1)(v) {
		return fmt.Sprintf("ha-sync-batch-size takes an integer greater than 0, %s given", term(v))
	}
	for _, words := range [...][3]string{
		{"ha-sync-mode", "manual", "automatic"},
		{"ha-promote-on-shutdown", "always", "when-synced"},
		{"ha-promote-on-failure", "always", "when-synced"},
	} {
		if v, ok := d[words[0]]; ok && v != words[1] && v != words[2] {
			return fmt.Sprintf("%s must be %q or %q, got %s", words[0], words[1], words[2], term(v))
		}
	}
	return ""
}

// checkMirrors checks ha-mode and ha-params.
func checkMirrors(mode any, d Definition) string {
	params, given := d[mirrorParams]
	said := "none"
	if given {
		said = term(params)
	}
	switch mode {
	case "all":
		if given {
			return `ha-mode="all" does not take parameters`
		}
	case "exactly":
		if !atLeast(1)(params) {
			return fmt.Sprintf(`ha-mode="exactly" takes an integer, %s given`, said)
		}
	case "nodes":
		nodes, ok := params.([]any)
		switch {
		case !ok:
			return fmt.Sprintf(`ha-mode="nodes" takes a list, %s given`, said)
		case len(nodes) == 0:
			return `ha-mode="nodes" list must be non-empty`
		}
		for _, n := range nodes {
			if !isString(n) {
				return fmt.Sprintf(`ha-mode="nodes" takes a list of strings, %s was not a string`, said)
			}
		}
	default:
		return term(mode) + " is not a valid ha-mode value"
	}
	return ""
}
