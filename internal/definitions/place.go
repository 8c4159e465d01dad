package definitions

import (
	"fmt"
	"regexp"
	"strings"
)

// place is where something is in a file, as a JSON path: "$.queues[3].arguments.x-message-ttl".
type place string

// root is the place of the whole.
const root place = "$"

// plainKey is a key that needs no quotes in a path.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (p place) field(key string) place {
	if plainKey.MatchString(key) {
		return p + place("."+key)
	}
	return p + place(fmt.Sprintf("[%q]", key))
}

func (p place) element(i int) place { return p + place(fmt.Sprintf("[%d]", i)) }

// part returns the place of the part of the file that this place is in: "$.queues[3]".
func (p place) part() place {
	before, _, ok := strings.Cut(string(p), "]")
	if !ok {
		return p
	}
	return place(before + "]")
}

// Fault is something wrong with a file, and where.
type Fault struct {
	Place string `json:"place"` // a JSON path
	Text  string `json:"text"`
}

// Error says both.
func (f Fault) Error() string { return f.Place + ": " + f.Text }

// Faults are all that is wrong with a file: first what has not the right form.
type Faults []Fault

// Error has a line for each.
func (f Faults) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "import definitions: %d faults, nothing is imported", len(f))
	if len(f) == 1 {
		b.Reset()
		b.WriteString("import definitions: 1 fault, nothing is imported")
	}
	for _, one := range f {
		b.WriteString("\n" + one.Error())
	}
	return b.String()
}
