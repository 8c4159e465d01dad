package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/requirement"
)

const repository = "../.."

// patience bounds every wait of these tests; nothing on a healthy machine comes near it.
const patience = time.Minute

// Every command and every example of the README is run as it stands there, one after the other
// against the broker that its first command starts.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 150 {
		t.Errorf("README.md has %d lines, want at most 150", n)
	}
	if want := "`export DUEPOST_URL=" + defaultURL + "`"; !bytes.Contains(text, []byte(want)) {
		t.Errorf("README.md lacks %s", want)
	}
	commands := readmeCommands(text)
	if len(commands) < 2 || commands[0] != "go run ./cmd/duepost serve" {
		t.Fatalf("the commands are %q, want one that starts the broker first", commands)
	}
	serve := runCommand(t, commands[0], "DUEPOST_DATA_DIR="+t.TempDir(),
		"DUEPOST_AMQP_ADDR=127.0.0.1:0", "DUEPOST_HTTP_ADDR=127.0.0.1:0")
	url := "DUEPOST_URL=" + serve.await(regexp.MustCompile(`amqp://\S+`))

	t.Run("commands", func(t *testing.T) {
		for _, c := range commands[1:] {
			if c == "make test" {
				continue // this is part of it
			}
			t.Run(c, func(t *testing.T) {
				if strings.Contains(c, " demo") {
					t.Parallel()
				}
				checkCommand(t, c, url)
			})
		}
	})
	t.Run("Go example", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "main.go")
		writeFile(t, file, readmeBlock(text, "go"))
		// Run from here, it finds the client library in this module.
		runCommand(t, "go run "+file, url).awaitEnd(`order 42 after -1500 ms`)
	})
	t.Run("Python example", func(t *testing.T) {
		const hint = "Debian package python3-pika"
		python := requirement.File(t, hint, "/usr/bin/python3")
		if exec.Command(python, "-c", "import pika").Run() != nil {
			requirement.Missing(t, "pika", hint)
		}
		file := filepath.Join(t.TempDir(), "main.py")
		writeFile(t, file, readmeBlock(text, "python"))
		runCommand(t, python+" "+file, url).awaitEnd(`^short expired\nlong expired\n$`)
	})
	serve.interrupt()
}

// checkCommand runs one command of the README and knows what must come of it.
func checkCommand(t *testing.T, command, url string) {
	t.Helper()
	const build = "go build -o duepost "
	if strings.HasPrefix(command, build) { // elsewhere: the repository stays as it is
		binary := filepath.Join(t.TempDir(), "duepost")
		runCommand(t, strings.Replace(command, "-o duepost", "-o "+binary, 1)).awaitEnd("")
		runCommand(t, binary+" version").awaitEnd("^duepost ")
		return
	}
	c := runCommand(t, command, url)
	switch {
	case strings.Contains(command, " publish "):
		c.awaitEnd(`published 1 to .* confirmed, due at`)
	case strings.Contains(command, "--queue orders"):
		c.await(regexp.MustCompile(`orders  hello  \(\d+ ms after due\)`))
		c.interrupt()
	case strings.Contains(command, "--bind"):
		c.awaitEnd(`shop:order.eu  \{"order": 42\}  \(\d+ ms after due\)`)
	case strings.Contains(command, " demo"):
		c.awaitEnd(`Nothing lost, nothing early, all on time`)
	default:
		t.Errorf("the test does not know what must come of %q", command)
	}
}

// readmeCommands are the lines of all sh blocks.
func readmeCommands(text []byte) (commands []string) {
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(text, -1) {
		for line := range strings.Lines(string(block[1])) {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	return commands
}

// readmeBlock is the first block of a language.
func readmeBlock(text []byte, language string) []byte {
	return regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)[1]
}

// running is a command in a process group of its own.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	text  string
	ended chan error    // holds how it ended
	grown chan struct{} // holds a signal after stdout has grown

	stdout, stderr lockedBuffer
}

// lockedBuffer may be written and read at the same time.
type lockedBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// runCommand starts a shell command at the root of the repository; it ends with the test.
func runCommand(t *testing.T, command string, env ...string) *running {
	t.Helper()
	r := &running{t: t, text: command, ended: make(chan error, 1), grown: make(chan struct{}, 1)}
	// exec: the shell must not stand between a signal and the command.
	r.cmd = exec.Command("sh", "-c", "exec "+command)
	r.cmd.Dir = repository
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Stderr = &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(r, stdout)
		r.ended <- r.cmd.Wait()
	}()
	t.Cleanup(func() { r.signal(syscall.SIGKILL) })
	return r
}

// Write takes what the command prints.
func (r *running) Write(p []byte) (int, error) {
	n, err := r.stdout.Write(p)
	select {
	case r.grown <- struct{}{}:
	default:
	}
	return n, err
}

// printed is what the command has printed on standard output.
func (r *running) printed() string { return r.stdout.String() }

// story is everything it has said, for failures.
func (r *running) story() string { return r.printed() + "--- stderr:\n" + r.stderr.String() }

// await waits until the command has printed what is wanted, and returns it.
func (r *running) await(want *regexp.Regexp) string {
	r.t.Helper()
	limit := time.After(patience)
	for {
		if found := want.FindString(r.printed()); found != "" {
			return found
		}
		select {
		case <-r.grown:
		case err := <-r.ended:
			r.ended <- err
			if found := want.FindString(r.printed()); found != "" {
				return found
			}
			r.t.Fatalf("%s: ended (%v) without %q:\n%s", r.text, err, want, r.story())
		case <-limit:
			r.t.Fatalf("%s: no %q after %v:\n%s", r.text, want, patience, r.story())
		}
	}
}

// awaitEnd waits until the command ends with exit code 0 and has printed what is wanted.
func (r *running) awaitEnd(want string) {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		if err != nil || !regexp.MustCompile(want).MatchString(r.printed()) {
			r.t.Errorf("%s: %v, want exit code 0 and %q:\n%s", r.text, err, want, r.story())
		}
	case <-time.After(patience):
		r.t.Errorf("%s: no end after %v:\n%s", r.text, patience, r.story())
	}
}

// interrupt does what Ctrl-C does, which signals the whole group, and waits for the end. The exit
// code is that of go run, which is 1 after an interrupt whatever the program's is.
func (r *running) interrupt() {
	r.t.Helper()
	r.signal(syscall.SIGINT)
	select {
	case err := <-r.ended:
		r.ended <- err
	case <-time.After(patience):
		r.t.Errorf("%s: no end %v after an interrupt:\n%s", r.text, patience, r.story())
	}
}

// signal signals the whole group; a group that has ended is left alone.
func (r *running) signal(s syscall.Signal) { _ = syscall.Kill(-r.cmd.Process.Pid, s) }

func writeFile(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
