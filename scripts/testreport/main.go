// Command testreport reads what "go test -json" prints and tells a person what
// happened: each package as it ends, the whole output of what failed, the tests
// that were skipped with their reasons, and one closing line with the counts.
//
//	go test -json ./... | go run ./scripts/testreport
//
// It exits with 1 if anything failed or nothing ran, and, where
// DUEPOST_REQUIRE=all, if anything was skipped.
package main

import (
	"fmt"
	"os"

	"github.com/duepost/duepost/internal/requirement"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "read test events: %v\n", err)
		os.Exit(2)
	}
	r.close()
	if !r.ok(requirement.Strict()) {
		os.Exit(1)
	}
}
