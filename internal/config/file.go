package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// File is the content of a configuration file: one JSON object whose keys are the settings'
// names and whose values are strings, numbers or booleans.
type File map[string]any

// ParseFile reads text; path is for the error texts, allowed are the known keys. All unknown
// keys are named at once: a setting that is silently not in force is worse than no start.
func ParseFile(path string, text []byte, allowed []string) (File, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var raw map[string]any
	if err := d.Decode(&raw); err != nil {
		return nil, fmt.Errorf("read configuration %s: %s: %w", path, position(text, d, err), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read configuration %s: %s: text after the object",
			path, position(text, d, err))
	}
	var faults []error
	file := File{}
	for key, v := range raw {
		if !slices.Contains(allowed, key) {
			faults = append(faults, fmt.Errorf("%s: unknown setting %q", path, key))
			continue
		}
		switch v := v.(type) {
		case string:
			file[key] = v
		case json.Number:
			file[key] = v.String()
		case bool:
			file[key] = fmt.Sprint(v)
		default:
			faults = append(faults, fmt.Errorf("%s: setting %q is a list, an object or null, "+
				"must be a string, a number or a boolean", path, key))
		}
	}
	if len(faults) > 0 {
		slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		faults = append(faults, fmt.Errorf("allowed are: %s", strings.Join(allowed, ", ")))
		return nil, errors.Join(faults...)
	}
	return file, nil
}

// position is where in the text the decoder stopped.
func position(text []byte, d *json.Decoder, err error) string {
	at := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	} else if errors.As(err, &kind) {
		at = kind.Offset
	}
	before := text[:min(int(at), len(text))]
	return fmt.Sprintf("line %d", 1+bytes.Count(before, []byte("\n")))
}
