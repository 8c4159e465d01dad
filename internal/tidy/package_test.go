package tidy

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// minDocumented is the share of exported names that need a comment.
const minDocumented = 0.95

// packageRules look at packages: names, comments, imports, files they bring along.
func packageRules() []rule {
	return []rule{
		{
			name:  "packages have a comment",
			check: packageComments,
			bad:   map[string]string{"a/a.go": "package a", "a/a_test.go": "// Package a is not here.\npackage a"},
			finds: "a: package has no comment",
			good:  map[string]string{"a/a.go": "package a", "a/doc.go": "// Package a is about a.\npackage a"},
		},
		{
			name:  "exported names are documented",
			check: exportedDocs,
			bad:   map[string]string{"a/a.go": "type T struct{}\nfunc (T) M() {}\n// C is one.\nconst C = 1"},
			finds: "33 % of exported names",
			good: map[string]string{
				"a/a.go": "// T is one.\ntype T struct{}\n// M is one.\nfunc (T) M() {}\nfunc (u) N() {}\n" +
					"// These are two.\nconst (\nA = 1\nB = 2\n)",
				"a/a_test.go": "func TestA() {}",
			},
		},
		{
			name:  "names say what a thing is about",
			check: emptyNames,
			bad:   map[string]string{"internal/util/a.go": "", "a/helpers_test.go": ""},
			finds: "internal/util/a.go: name says nothing",
			good:  map[string]string{"internal/store/utility.go": "", "a/base64.go": ""},
		},
		{
			name:  "packages import what the layout allows",
			check: importMatrix,
			bad: map[string]string{
				"internal/wire/a.go":   "package wire\nimport `" + module + "/internal/broker`",
				"internal/amqp/a.go":   "package amqp\nimport `golang.org/x/sys/unix`",
				"internal/new/a.go":    "package new",
				"internal/delay/a.go":  "package delay\nimport `example.com/wheel`",
				"internal/a/a_test.go": "package a\nimport `example.com/assert`",
			},
			finds: "[{internal/a/a_test.go:2 test imports example.com/assert} " +
				"{internal/amqp/a.go:2 internal/amqp imports golang.org/x/sys/unix} " +
				"{internal/delay/a.go:2 internal/delay imports example.com/wheel} " +
				"{internal/new internal/new has no row in the table of allowed imports} " +
				"{internal/wire/a.go:2 internal/wire imports internal/broker}]",
			good: map[string]string{
				"internal/wire/a.go":      "package wire\nimport (`io`; `" + module + "/internal/amqp`)",
				"internal/wire/a_test.go": "package wire\nimport `github.com/google/go-cmp/cmp`",
			},
		},
		{
			name:  "every testdata file is used",
			check: testdataUsed,
			bad: map[string]string{
				"a/a_test.go":                 "var _ = os.ReadFile(`testdata/one.txt`)",
				"a/testdata/one.txt":          "",
				"a/testdata/two.txt":          "",
				"a/testdata/fuzz/FuzzGone/17": "",
				"b/testdata/three.txt":        "",
			},
			finds: "[{a/testdata/fuzz/FuzzGone/17 no test of a uses it} " +
				"{a/testdata/two.txt no test of a uses it} {b/testdata/three.txt no test of b uses it}]",
			good: map[string]string{
				"a/a_test.go": "func FuzzA(f *testing.F) { filepath.Glob(`testdata/*.txt`); " +
					"os.ReadDir(`testdata/all`); read(`golden_` + name) }",
				"a/testdata/golden_a.json": "",
				"a/testdata/one.txt":       "",
				"a/testdata/all/x/y":       "",
				"a/testdata/fuzz/FuzzA/17": "",
			},
		},
	}
}

func packageComments(tr tree) (found []finding) {
	has := map[string]bool{}
	tr.goFiles(func(f file) {
		if !f.isTest() {
			has[f.dir()] = has[f.dir()] || f.ast.Doc != nil
		}
	})
	for dir, ok := range has {
		if !ok {
			found = append(found, finding{dir + ":", "package has no comment"})
		}
	}
	return found
}

func exportedDocs(tr tree) []finding {
	var bare []finding
	total := 0
	note := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		total++
		if !slices.ContainsFunc(docs, func(g *ast.CommentGroup) bool { return g != nil }) {
			bare = append(bare, tr.at(name.Pos(), "%s has no comment", name))
		}
	}
	tr.goFiles(func(f file) {
		if f.isTest() || f.ast.Name.Name == "main" {
			return
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if of := receiverType(d); of == "" || ast.IsExported(of) {
					note(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				noteSpecs(d, note)
			}
		}
	})
	if total == 0 || float64(total-len(bare)) >= minDocumented*float64(total) {
		return nil
	}
	share := fmt.Sprintf("%d %% of exported names have a comment", 100*(total-len(bare))/total)
	return append(bare, finding{"all packages", share})
}

// noteSpecs notes the names of a declaration. A comment above a group counts for all in it
// save types.
func noteSpecs(d *ast.GenDecl, note func(*ast.Ident, ...*ast.CommentGroup)) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if d.Lparen == token.NoPos {
				note(s.Name, s.Doc, s.Comment, d.Doc)
			} else {
				note(s.Name, s.Doc, s.Comment)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				note(name, s.Doc, s.Comment, d.Doc)
			}
		}
	}
}

func emptyNames(tr tree) (found []finding) {
	empty := regexp.MustCompile(`^(base|common|utils?|helpers?|misc|lib|shared|types|models|interfaces|pkg)(_test)?$`)
	tr.goFiles(func(f file) {
		for _, part := range strings.Split(strings.TrimSuffix(f.path, ".go"), "/") {
			if empty.MatchString(part) {
				found = append(found, finding{f.path + ":", "name says nothing: " + part})
			}
		}
	})
	return found
}

func importMatrix(tr tree) (found []finding) {
	seen := map[string]bool{}
	tr.goFiles(func(f file) {
		dir := f.dir()
		allowed, known := layout()[dir]
		if !known && !seen[dir] && strings.HasPrefix(dir, "internal/") && !f.isTest() {
			found = append(found, finding{dir, dir + " has no row in the table of allowed imports"})
		}
		seen[dir] = true
		for _, s := range f.ast.Imports {
			p := importPath(s)
			inner, ours := strings.CutPrefix(p, module)
			inner = strings.TrimPrefix(inner, "/")
			outside := !ours && strings.Contains(strings.SplitN(p, "/", 2)[0], ".")
			switch {
			case f.isTest() && outside && !inModules(p, testModules()) && !inModules(p, allowed):
				found = append(found, tr.at(s.Pos(), "test imports %s", p))
			case f.isTest() || !known:
			case ours && !slices.Contains(allowed, inner), outside && !inModules(p, allowed):
				found = append(found, tr.at(s.Pos(), "%s imports %s", dir, cmp.Or(inner, p)))
			}
		}
	})
	return found
}

// inModules reports whether a package belongs to one of the modules.
func inModules(p string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return p == m || strings.HasPrefix(p, m+"/")
	})
}

// testdataUsed looks for the files below testdata in the strings of the package beside it: by
// name, by its beginning up to a "_", by pattern, or by the directory below testdata that holds
// them.
func testdataUsed(tr tree) (found []finding) {
	literals, fuzzers := map[string][]string{}, map[string]bool{}
	inspect(tr, func(f file, _ ast.Decl, n ast.Node) {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				literals[f.dir()] = append(literals[f.dir()], strings.Trim(n.Value, "\"`"))
			}
		case *ast.FuncDecl:
			fuzzers[f.dir()+" "+n.Name.Name] = true
		}
	})
	for _, f := range tr.files {
		before, rest, ok := strings.Cut("/"+f.path, "/testdata/")
		dir := path.Clean(strings.TrimPrefix(before, "/"))
		if !ok {
			continue
		}
		if parts := strings.Split(rest, "/"); parts[0] == "fuzz" && len(parts) == 3 {
			if !fuzzers[dir+" "+parts[1]] {
				found = append(found, finding{f.path, "no test of " + dir + " uses it"})
			}
			continue
		}
		if !slices.ContainsFunc(literals[dir], func(l string) bool { return names(l, "testdata/"+rest) }) {
			found = append(found, finding{f.path, "no test of " + dir + " uses it"})
		}
	}
	return found
}

// names reports whether a string in a test names a file, which is given from its package.
func names(literal, file string) bool {
	if matched, err := path.Match(literal, file); err == nil && matched {
		return true
	}
	dir := strings.TrimSuffix(literal, "/")
	below := strings.HasPrefix(dir, "testdata/") && strings.HasPrefix(file, dir+"/")
	begins := strings.HasSuffix(literal, "_") && strings.HasPrefix(path.Base(file), path.Base(literal))
	return below || begins || path.Base(literal) == path.Base(file)
}
