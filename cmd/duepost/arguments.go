package main

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// joinNegatives writes "--in -5s" as "--in=-5s". The parser takes -5s for a flag of its own and
// says so; a value that is not allowed should be called that. args[0] is the verb.
func joinNegatives(app *kong.Application, args []string) []string {
	var flags []*kong.Flag
	for _, verb := range app.Children {
		if verb.Name == args[0] {
			flags = verb.Flags
		}
	}
	negative := regexp.MustCompile(`^-[0-9.]`)
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		name, takesValue := flagOf(flags, args[i])
		if takesValue && i+1 < len(args) && negative.MatchString(args[i+1]) {
			joined = append(joined, "--"+name+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
}

// flagOf finds the flag that an argument names, such as --in or -n.
func flagOf(flags []*kong.Flag, arg string) (name string, takesValue bool) {
	for _, f := range flags {
		if arg == "--"+f.Name || f.Short != 0 && arg == "-"+string(f.Short) {
			return f.Name, !f.IsBool()
		}
	}
	return strings.TrimLeft(arg, "-"), false
}
