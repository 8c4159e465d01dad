package tidy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// textRules look at every text file, whatever its language.
func textRules() []rule {
	return []rule{
		{
			name:  "nothing of the place it was written at",
			check: noPlaces,
			bad: map[string]string{
				"a.md":   "see\n/wo" + "rk/main/README",
				"b.lock": "https://registry.npm" + "js.org/amqplib",
			},
			finds: "a.md:2 names /wo" + "rk/} {b.lock:1 names registry.npm" + "js.org",
			good:  map[string]string{"a.md": "the network/wo" + "rk/x, https://pkg.go.dev/net"},
		},
		{
			name:  "direct dependencies are on the list",
			check: dependencies,
			bad:   map[string]string{"go.mod": "module x\n\nrequire (\n\texample.com/a v1.0.0\n\t" + kong + " v1.0.0\n)\n"},
			finds: "go.mod:4 example.com/a",
			good: map[string]string{
				"go.mod":       "module x\nrequire " + goCmp + " v0.7.0\nrequire example.com/a v1.0.0 // indirect\n",
				"tools/go.mod": "module y\nrequire example.com/b v1.0.0\n",
			},
		},
	}
}

func noPlaces(tr tree) (found []finding) {
	// Written in pieces, so that this file may be read too.
	places := regexp.MustCompile(`(?:^|[^\w.])(/wo` + `rk/|/ro` + `ot/)|\b(proxy\.go` + `lang\.org|sum\.go` + `lang\.org|` +
		`registry\.npm` + `js\.org|(?:deb|snapshot|security)\.deb` + `ian\.org)\b`)
	for _, f := range tr.files {
		for i, line := range strings.Split(f.src, "\n") {
			if m := places.FindStringSubmatch(line); m != nil {
				found = append(found, finding{fmt.Sprintf("%s:%d", f.path, i+1), "names " + m[1] + m[2]})
			}
		}
	}
	return found
}

func dependencies(tr tree) (found []finding) {
	direct := regexp.MustCompile(`^(?:require\s+|\t)([^\s]+)\s+v\S+$`)
	n := 0
	for _, f := range tr.files {
		if f.path != "go.mod" {
			continue
		}
		for i, line := range strings.Split(f.src, "\n") {
			m := direct.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			n++
			if !slices.Contains(allowedModules(), m[1]) {
				found = append(found, finding{fmt.Sprintf("go.mod:%d", i+1), m[1] + " is not on the list"})
			}
		}
	}
	if n > maxModules {
		found = append(found, finding{"go.mod", fmt.Sprintf("%d direct dependencies, want at most %d", n, maxModules)})
	}
	return found
}
