package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// codeRules look into Go files one by one.
func codeRules() []rule {
	return []rule{
		{
			name:  "no init",
			check: noInit,
			bad:   map[string]string{"a/a.go": "func init() {}"},
			finds: "a/a.go:2",
			good:  map[string]string{"a/a.go": "type T int\nfunc (T) init() {}\nfunc New() {}"},
		},
		{
			name:  "no package-level variables",
			check: noVariables,
			bad: map[string]string{
				"a/a.go": "var seen = map[string]bool{}",
				"a/b.go": "var table = [2]int{1, 2}\nfunc f() { table[0] = 3 }",
			},
			finds: "a/a.go:2 seen is a package-level variable} {a/b.go:2 table",
			good: map[string]string{
				"a/a.go": "var ErrGone = errors.New(`gone`)\n" +
					"var _ io.Reader = (*T)(nil)\n" +
					"var word = regexp.MustCompile(`a`)\n" +
					"//go:embed page.html\nvar page []byte\n" +
					"var names = [2]string{`a`, `b`}\nfunc f(i int) string { return names[i] }",
				"a/a_test.go": "var rewrite = flag.Bool(`rewrite`, false, `write anew`)",
			},
		},
		{
			name:  "no sleep in tests outside synctest",
			check: noSleep,
			bad: map[string]string{
				"a/a_test.go": "import `time`\nfunc TestA(t *testing.T) { time.Sleep(1) }",
				"a/b_test.go": "import (`time`; `testing/synctest`)\n" +
					"func TestB(t *testing.T) { synctest.Test(t, f)\ntime.Sleep(1) }",
			},
			finds: "a/a_test.go:3 sleeps; wait for an event, or use testing/synctest} {a/b_test.go:4",
			good: map[string]string{
				"a/a.go": "import `time`\nfunc f() { time.Sleep(1) }",
				"a/a_test.go": "import (`time`; `testing/synctest`)\n" +
					"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }\n" +
					"func advance() { time.Sleep(1) }\n" +
					"func bubble(t *testing.T, f func()) { synctest.Test(t, f) }",
				"a/b_test.go": "import `time`\nfunc TestB(t *testing.T) { bubble(t, func() { time.Sleep(1) }) }",
			},
		},
		{
			name:  "no panic outside invariant",
			check: noPanic,
			bad:   map[string]string{"a/a.go": "func f() { panic(1) }"},
			finds: "a/a.go:2",
			good: map[string]string{
				"a/a.go":      "func invariant(ok bool) { if !ok { panic(1) } }",
				"a/a_test.go": "func f() { panic(1) }",
			},
		},
		{
			name:  "error texts say verb and noun",
			check: noFailedTo,
			bad:   map[string]string{"a/a.go": "var ErrX = errors.New(`failed to open`)"}, // tidy: example
			finds: "a/a.go:2",
			good:  map[string]string{"a/a.go": "var ErrX = errors.New(`open store`)"},
		},
		{
			name:  "no to-do without an issue",
			check: noBareToDo,
			bad:   map[string]string{"a/a.go": "// TO" + "DO: later\nvar _ = 1"},
			finds: "a/a.go:2",
			good:  map[string]string{"a/a.go": "// TO" + "DO(#12): later\nvar _ = 1"},
		},
		{
			name:  "receivers have one or two letters and are the same for a type",
			check: shortReceivers,
			bad: map[string]string{
				"a/a.go": "func (store *T) A() {}",
				"a/b.go": "func (t U) A() {}\nfunc (u *U) B() {}",
			},
			finds: "a/a.go:2 receiver store of T} {a/b.go:3 receiver u of U",
			good:  map[string]string{"a/a.go": "func (t T) A() {}\nfunc (T) B() {}\nfunc (t *T) C() {}"},
		},
		{
			name:  "no Get before a name",
			check: noGet,
			bad:   map[string]string{"a/a.go": "func (t T) GetName() string { return `` }"},
			finds: "a/a.go:2",
			good:  map[string]string{"a/a.go": "func (t T) Get() {}\nfunc (t T) Getter() {}"},
		},
	}
}

// inspect calls f for each node of each Go file, with the declaration it is in.
func inspect(tr tree, f func(file, ast.Decl, ast.Node)) {
	tr.goFiles(func(one file) {
		for _, d := range one.ast.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				f(one, d, n)
				return true
			})
		}
	})
}

func noInit(tr tree) (found []finding) {
	tr.goFiles(func(f file) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, tr.at(fn.Pos(), "has an init function"))
			}
		}
	})
	return found
}

func noVariables(tr tree) (found []finding) {
	changed := assignedNames(tr)
	tr.goFiles(func(f file) {
		for _, d := range f.ast.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if !isFixed(f, gen, v, i, changed) {
						found = append(found, tr.at(name.Pos(), "%s is a package-level variable", name))
					}
				}
			}
		}
	})
	return found
}

// isFixed reports whether a package-level variable is one of those that never change.
func isFixed(f file, gen *ast.GenDecl, v *ast.ValueSpec, i int, changed map[string]bool) bool {
	name := v.Names[i].Name
	for _, doc := range []*ast.CommentGroup{gen.Doc, v.Doc} {
		if doc != nil && strings.Contains(docText(doc), "//go:embed ") {
			return true
		}
	}
	if name == "_" {
		return true
	}
	if i >= len(v.Values) || changed[f.dir()+"."+name] {
		return false
	}
	switch x := v.Values[i].(type) {
	case *ast.CallExpr:
		made := []string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "crc32.MakeTable", "strings.NewReplacer"}
		fun := exprText(x.Fun)
		return slices.Contains(made, fun) || f.isTest() && strings.HasPrefix(fun, "flag.")
	case *ast.UnaryExpr: // a sentinel of a type of our own
		return x.Op == token.AND && strings.HasPrefix(strings.ToLower(name), "err")
	case *ast.SelectorExpr: // a short name
		return strings.HasPrefix(exprText(x), "binary.")
	case *ast.CompositeLit: // a table that nobody writes to; a map or slice could leak
		array, ok := x.Type.(*ast.ArrayType)
		return ok && array.Len != nil
	}
	return false
}

// assignedNames returns "dir.name" of each name that its package assigns to, counts up or
// takes the address of, be it only an element of it.
func assignedNames(tr tree) map[string]bool {
	names := map[string]bool{}
	inspect(tr, func(f file, _ ast.Decl, n ast.Node) {
		var targets []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			targets = n.Lhs
		case *ast.IncDecStmt:
			targets = []ast.Expr{n.X}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				targets = []ast.Expr{n.X}
			}
		}
		for _, x := range targets {
			for {
				if index, ok := x.(*ast.IndexExpr); ok {
					x = index.X
				} else if field, ok := x.(*ast.SelectorExpr); ok {
					x = field.X
				} else {
					break
				}
			}
			if name, ok := x.(*ast.Ident); ok {
				names[f.dir()+"."+name.Name] = true
			}
		}
	})
	return names
}

// noSleep allows time.Sleep in tests inside the function given to synctest.Test, and in
// functions beside such tests that are not tests themselves.
func noSleep(tr tree) (found []finding) {
	bubbles := bubbleMakers(tr)
	inspect(tr, func(f file, d ast.Decl, n ast.Node) {
		if !f.isTest() || !isCall(n, "time.Sleep") || inBubble(bubbles[f.dir()], d, n) {
			return
		}
		fn, _ := d.(*ast.FuncDecl)
		entry := regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)
		if fn != nil && !entry.MatchString(fn.Name.Name) && imports(f, "testing/synctest") {
			return
		}
		found = append(found, tr.at(n.Pos(), "sleeps; wait for an event, or use testing/synctest"))
	})
	return found
}

// bubbleMakers returns, by directory, what runs a function in a bubble: synctest.Test and the
// functions that call it for their callers.
func bubbleMakers(tr tree) map[string][]string {
	makers := map[string][]string{}
	inspect(tr, func(f file, d ast.Decl, n ast.Node) {
		if fn, ok := d.(*ast.FuncDecl); ok && isCall(n, "synctest.Test") {
			makers[f.dir()] = append(makers[f.dir()], "synctest.Test", fn.Name.Name)
		}
	})
	return makers
}

// inBubble reports whether n lies inside a call of one of makers in d.
func inBubble(makers []string, d ast.Decl, n ast.Node) (inside bool) {
	ast.Inspect(d, func(outer ast.Node) bool {
		call, ok := outer.(*ast.CallExpr)
		if ok && slices.Contains(makers, exprText(call.Fun)) {
			inside = inside || call.Pos() <= n.Pos() && n.End() <= call.End()
		}
		return !inside
	})
	return inside
}

func noPanic(tr tree) (found []finding) {
	inspect(tr, func(f file, d ast.Decl, n ast.Node) {
		fn, _ := d.(*ast.FuncDecl)
		allowed := f.isTest() || fn != nil && strings.HasPrefix(fn.Name.Name, "invariant")
		if !allowed && isCall(n, "panic") {
			found = append(found, tr.at(n.Pos(), "panics outside an invariant function"))
		}
	})
	return found
}

func noFailedTo(tr tree) (found []finding) {
	phrase := regexp.MustCompile(`(?i)\b(failed to|error while)\b`)
	inspect(tr, func(f file, _ ast.Decl, n ast.Node) {
		lit, ok := n.(*ast.BasicLit)
		if ok && lit.Kind == token.STRING && f.dir() != "internal/tidy" && phrase.MatchString(lit.Value) {
			found = append(found, tr.at(n.Pos(), `say "verb noun: ..." instead of %s`, lit.Value))
		}
	})
	return found
}

func noBareToDo(tr tree) (found []finding) {
	word := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b(\(#\d+\))?`)
	tr.goFiles(func(f file) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				for _, m := range word.FindAllStringSubmatch(c.Text, -1) {
					if m[2] == "" {
						found = append(found, tr.at(c.Pos(), "%s without an issue number", m[1]))
					}
				}
			}
		}
	})
	return found
}

func shortReceivers(tr tree) (found []finding) {
	first := map[string]string{} // dir and type -> receiver
	tr.goFiles(func(f file) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 {
				continue
			}
			name := fn.Recv.List[0].Names[0].Name
			of := receiverType(fn)
			key := f.dir() + "." + of
			if first[key] == "" {
				first[key] = name
			}
			if name != "_" && (len(name) > 2 || name != first[key]) {
				found = append(found, tr.at(fn.Pos(), "receiver %s of %s", name, of))
			}
		}
	})
	return found
}

func noGet(tr tree) (found []finding) {
	tr.goFiles(func(f file) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && regexp.MustCompile(`^Get[A-Z]`).MatchString(fn.Name.Name) {
				found = append(found, tr.at(fn.Pos(), "%s: leave out Get", fn.Name))
			}
		}
	})
	return found
}

// receiverType is the name of the type a method belongs to, or "".
func receiverType(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	x := fn.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if generic, ok := x.(*ast.IndexExpr); ok {
		x = generic.X
	}
	return exprText(x)
}

// isCall reports whether n calls the function of that name, as written: "panic", "time.Sleep".
func isCall(n ast.Node, name string) bool {
	call, ok := n.(*ast.CallExpr)
	return ok && exprText(call.Fun) == name
}

// exprText is a name or a qualified name as written, "" for anything else.
func exprText(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return fmt.Sprintf("%s.%s", exprText(x.X), x.Sel.Name)
	}
	return ""
}

// docText is a comment with its directives, which CommentGroup.Text leaves out.
func docText(doc *ast.CommentGroup) string {
	var lines []string
	for _, c := range doc.List {
		lines = append(lines, c.Text)
	}
	return strings.Join(lines, "\n") + "\n"
}

func imports(f file, wanted string) bool {
	return slices.ContainsFunc(f.ast.Imports, func(s *ast.ImportSpec) bool {
		return importPath(s) == wanted
	})
}

func importPath(s *ast.ImportSpec) string { return strings.Trim(s.Path.Value, "\"`") }
