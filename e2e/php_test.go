package e2e

import (
	"testing"

	"github.com/duepost/duepost/internal/requirement"
)

// TestPHP plays every scheme with the PHP client that Debian ships.
func TestPHP(t *testing.T) {
	t.Parallel()
	play(t, phpProgram(t))
}

// phpProgram makes it ready.
func phpProgram(t *testing.T) program {
	t.Helper()
	php := requirement.Tool(t, "php", "Debian package php-cli")
	requirement.Probe(t, "the PHP library PhpAmqpLib", "Debian package php-amqplib",
		php, "-r", "require 'PhpAmqpLib/autoload.php';")
	return program{dir: "php", argv: []string{php, "main.php"}}
}
