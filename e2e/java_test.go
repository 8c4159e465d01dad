package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/requirement"
)

// TestJava plays every scheme with the Java client that Debian ships.
func TestJava(t *testing.T) {
	t.Parallel()
	play(t, javaProgram(t))
}

// javaProgram makes it ready.
func javaProgram(t *testing.T) program {
	t.Helper()
	javac := requirement.Tool(t, "javac", "Debian package default-jdk-headless")
	java := requirement.Tool(t, "java", "Debian package default-jdk-headless")
	const hint = "Debian package librabbitmq-client-java"
	jars := []string{
		requirement.File(t, hint, "/usr/share/java/amqp-client.jar"),
		requirement.File(t, hint, "/usr/share/java/slf4j-api.jar"),
		requirement.File(t, hint, "/usr/share/java/slf4j-nop.jar"),
	}

	sources, err := filepath.Glob("java/*.java")
	if err != nil || len(sources) == 0 {
		t.Fatalf("list java/*.java: %v, %d files", err, len(sources))
	}
	classes := t.TempDir()
	classpath := strings.Join(slices.Concat([]string{classes}, jars), ":")
	args := []string{"-Xlint:all,-try", "-Werror", "-encoding", "UTF-8", "-cp", classpath, "-d", classes}
	if out, err := exec.Command(javac, append(args, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	// One thread for collecting and quick compilation only: these programs live for seconds.
	return program{argv: []string{java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath, "Main"}}
}
