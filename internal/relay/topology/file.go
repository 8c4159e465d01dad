package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Kept is a delayed exchange of a file of exchanges to keep.
type Kept struct {
	Exchange
	VHost string // empty for every one that a relay works in
}

// keptFile is the form of such a file.
type keptFile struct {
	Exchanges []struct {
		Name      string `yaml:"name"`
		Type      string `yaml:"type"`
		Alternate string `yaml:"alternate-exchange"`
		VHost     string `yaml:"vhost"`
	} `yaml:"exchanges"`
}

// ReadKept reads a file of exchanges in YAML. If anything in it is wrong there are none, and the error
// has every fault with its line. Type is direct unless set; all are durable.
func ReadKept(text []byte) ([]Kept, error) {
	var file keptFile
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read exchanges: %w; allowed are a list exchanges of name, type, alternate-exchange and vhost", err)
	}
	lines := linesOf(text)
	var all []Kept
	var faults []error
	seen := map[[2]string]bool{}
	for i, one := range file.Exchanges {
		k := Kept{Exchange{Name: one.Name, Type: one.Type, Durable: true, Alternate: one.Alternate}, one.VHost}
		if k.Type == "" {
			k.Type = "direct"
		}
		if err := k.Check(); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", lines[i], err))
		}
		if at := [2]string{k.VHost, k.Name}; seen[at] {
			faults = append(faults, fmt.Errorf("line %d: exchange %q is there twice", lines[i], k.Name))
		} else {
			seen[at] = true
		}
		all = append(all, k)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("read exchanges: %w", errors.Join(faults...))
	}
	return all, nil
}

// linesOf are the lines of the entries of a file that was decoded.
func linesOf(text []byte) (lines []int) {
	var file struct {
		Exchanges []yaml.Node `yaml:"exchanges"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil // not so: it was decoded
	}
	for _, n := range file.Exchanges {
		lines = append(lines, n.Line)
	}
	return lines
}
