package e2e

import (
	"testing"

	"github.com/duepost/duepost/internal/requirement"
)

// TestNode plays every scheme with amqplib, the Node client, at the version in
// package-lock.json.
func TestNode(t *testing.T) {
	t.Parallel()
	play(t, nodeProgram(t))
}

// nodeProgram makes it ready.
func nodeProgram(t *testing.T) program {
	t.Helper()
	node := requirement.Tool(t, "node", "Debian package nodejs")
	requirement.File(t, "run npm ci in e2e/node", "node/node_modules/amqplib/package.json")
	return program{dir: "node", argv: []string{node, "main.js"}}
}
