package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// module is the path of the root module.
const module = "github.com/duepost/duepost"

// tree is the text files of the repository, sorted by path.
type tree struct {
	fset  *token.FileSet
	files []file
}

// file is one text file. ast is nil if it is not Go of the root module.
type file struct {
	path string // from the repository's root, with slashes
	src  string
	ast  *ast.File
}

func (f file) dir() string  { return path.Dir(f.path) }
func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// finding is a place that breaks a rule.
type finding struct{ at, text string }

// rule is a check with an example that breaks it and one that does not. Examples are files by
// path; a Go file whose text has no package clause gets "package x".
type rule struct {
	name  string
	check func(tree) []finding
	bad   map[string]string
	finds string // must be part of what check says of bad
	good  map[string]string
}

func rules() []rule { return slices.Concat(codeRules(), packageRules(), textRules(), symbolRules()) }

// TestRepository reports each place in the repository that breaks a rule.
func TestRepository(t *testing.T) {
	t.Parallel()
	repository := readTree(t, "../..")
	if n := len(repository.files); n < 20 {
		t.Fatalf("read repository: got %d files, want the whole of it", n)
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range r.check(repository) {
				t.Errorf("%s: %s", f.at, f.text)
			}
		})
	}
}

// TestRules proves that each rule finds what it is meant to find and nothing else.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			found := fmt.Sprint(r.check(parseTree(t, r.bad)))
			if r.finds == "" || !strings.Contains(found, r.finds) {
				t.Errorf("in the bad example: got %s, want it to say %q", found, r.finds)
			}
			if found := r.check(parseTree(t, r.good)); len(found) != 0 {
				t.Errorf("in the good example: got %v, want nothing", found)
			}
		})
	}
}

// TestLengths prints the longest files and functions. It never fails: a rule that is obeyed
// by cutting a thing in two is worse than a long function.
func TestLengths(t *testing.T) {
	t.Parallel()
	type length struct {
		lines int
		what  string
	}
	var files, funcs []length
	repository := readTree(t, "../..")
	for _, f := range repository.files {
		if f.ast == nil {
			continue
		}
		files = append(files, length{strings.Count(f.src, "\n"), f.path})
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := repository.line(fn.End()) - repository.line(fn.Pos()) + 1
				funcs = append(funcs, length{lines, f.path + " " + fn.Name.Name})
			}
		}
	}
	for title, all := range map[string][]length{"files": files, "functions": funcs} {
		slices.SortFunc(all, func(a, b length) int { return b.lines - a.lines })
		for _, l := range all[:min(15, len(all))] {
			t.Logf("%s: %4d %s", title, l.lines, l.what)
		}
	}
}

// readTree reads the repository. What builds and tools leave behind is not part of it.
func readTree(t *testing.T, root string) tree {
	t.Helper()
	files := map[string]string{}
	left := []string{".git", "node_modules", "build", "duepost-data", "vendor", "target"}
	dir := os.DirFS(root)
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(left, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		src, err := fs.ReadFile(dir, p)
		if err == nil && !bytes.ContainsRune(src[:min(len(src), 8000)], 0) { // else not text
			files[p] = string(src)
		}
		return err
	})
	if err != nil {
		t.Fatalf("read repository: %v", err)
	}
	return parseTree(t, files)
}

// parseTree makes a tree of files by path.
func parseTree(t *testing.T, files map[string]string) tree {
	t.Helper()
	tr := tree{fset: token.NewFileSet()}
	for p, src := range files {
		f := file{path: p, src: src}
		if strings.HasSuffix(p, ".go") && !inOtherModule(files, p) && !inTestdata(p) {
			if !strings.HasPrefix(src, "package ") && !strings.Contains(src, "\npackage ") {
				src = "package x\n" + src
			}
			var err error
			f.ast, err = parser.ParseFile(tr.fset, p, src, parser.ParseComments)
			if err != nil {
				t.Fatalf("parse %s: %v", p, err)
			}
		}
		tr.files = append(tr.files, f)
	}
	slices.SortFunc(tr.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return tr
}

// inOtherModule reports whether a directory between the root and the file has a go.mod.
func inOtherModule(files map[string]string, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, ok := files[dir+"/go.mod"]; ok {
			return true
		}
	}
	return false
}

func inTestdata(p string) bool { return slices.Contains(strings.Split(p, "/"), "testdata") }

func (tr tree) line(p token.Pos) int { return tr.fset.Position(p).Line }

// at is a finding at a place in a Go file.
func (tr tree) at(p token.Pos, format string, a ...any) finding {
	pos := tr.fset.Position(p)
	return finding{fmt.Sprintf("%s:%d", pos.Filename, pos.Line), fmt.Sprintf(format, a...)}
}

// goFiles calls f for each Go file of the root module.
func (tr tree) goFiles(f func(file)) {
	for _, one := range tr.files {
		if one.ast != nil {
			f(one)
		}
	}
}
