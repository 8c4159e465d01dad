package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// symbolRules hold the documents against the code.
func symbolRules() []rule {
	return []rule{{
		name:  "documents name symbols that exist",
		check: staleSymbols,
		bad: map[string]string{
			"internal/a/a.go": "type T struct{ mu int }\nfunc (t *T) Run() {}\nfunc New() {}",
			"docs/a.md":       "`a.T.Run` and `a.T.mu` and `a.New` are,\nbut not `a.Old`, nor `a.T.run`",
		},
		finds: "docs/a.md:2 names a.Old, which is not in the code} {docs/a.md:2 names a.T.run",
		good: map[string]string{
			"internal/a/a.go": "type T struct{ mu int }\nfunc (t *T) Run() {}\nconst N = 1",
			"docs/a.md":       "`a.T.Run`, `a.N`, `a.go`, `b.Old`, a.Old without quotes",
		},
	}}
}

// staleSymbols looks in the documents' code spans for package.Name and package.Type.member of
// the packages below internal.
func staleSymbols(tr tree) (found []finding) {
	known, packages := symbols(tr)
	span := regexp.MustCompile("`(\\w+)\\.(\\w+(?:\\.\\w+)?)`")
	for _, f := range tr.files {
		if !strings.HasPrefix(f.path, "docs/") || !strings.HasSuffix(f.path, ".md") {
			continue
		}
		for i, line := range strings.Split(f.src, "\n") {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				name := m[1] + "." + m[2]
				if packages[m[1]] && !known[name] && m[2] != "go" {
					found = append(found, finding{fmt.Sprintf("%s:%d", f.path, i+1),
						"names " + name + ", which is not in the code"})
				}
			}
		}
	}
	return found
}

// symbols returns the names that the packages below internal declare: package.Name,
// package.Type.method and package.Type.field.
func symbols(tr tree) (known, packages map[string]bool) {
	known, packages = map[string]bool{}, map[string]bool{}
	tr.goFiles(func(f file) {
		name, ok := strings.CutPrefix(f.dir(), "internal/")
		if !ok || f.isTest() {
			return
		}
		packages[name] = true
		for _, d := range f.ast.Decls {
			for _, symbol := range declared(d) {
				known[name+"."+symbol] = true
			}
		}
	})
	return known, packages
}

func declared(d ast.Decl) (names []string) {
	if fn, ok := d.(*ast.FuncDecl); ok {
		if fn.Recv == nil {
			return []string{fn.Name.Name}
		}
		return []string{receiverName(fn) + "." + fn.Name.Name}
	}
	for _, s := range d.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			for _, n := range s.Names {
				names = append(names, n.Name)
			}
		case *ast.TypeSpec:
			names = append(names, s.Name.Name)
			fields, ok := s.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range fields.Fields.List {
				for _, n := range field.Names {
					names = append(names, s.Name.Name+"."+n.Name)
				}
			}
		}
	}
	return names
}

// receiverName is the type that a method belongs to.
func receiverName(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, _ := t.(*ast.Ident)
	return name.Name
}
