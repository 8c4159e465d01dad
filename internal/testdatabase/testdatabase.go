// Package testdatabase runs database servers for tests: PostgreSQL, MariaDB and Redis, each from
// Debian's packages, with a directory and a socket of its own, never the system's service.
// It knows how to start, kill and start them again, and no driver.
package testdatabase

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/requirement"
)

// startTimeout is how long a server may take until its socket answers.
const startTimeout = 30 * time.Second

// Server is a running server. Its methods end the test if they cannot do their work.
type Server struct {
	// Dir has all that belongs to it.
	Dir string
	// Socket is where it listens.
	Socket string

	ready   func() bool // what must be so besides that it listens; nil for nothing
	args    []string
	attr    *syscall.SysProcAttr
	process *exec.Cmd
	output  bytes.Buffer
}

// Postgres runs a PostgreSQL with user postgres, who needs no password.
func Postgres(t *testing.T) *Server {
	t.Helper()
	dir := "/usr/lib/postgresql"
	found, _ := fs.Glob(os.DirFS(dir), "*/bin/postgres")
	if len(found) == 0 {
		requirement.Missing(t, "PostgreSQL", "apt-get install postgresql")
	}
	bin := filepath.Join(dir, filepath.Dir(found[len(found)-1]))
	s := newServer(t, "postgres")
	s.Socket = filepath.Join(s.Dir, ".s.PGSQL.5432")
	data := filepath.Join(s.Dir, "data")
	s.run(t, filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
	s.args = []string{filepath.Join(bin, "postgres"), "-D", data, "-k", s.Dir, "-p", "5432",
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"}
	s.ready = func() bool { // it listens, and refuses, while it starts
		state, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return err == nil && strings.HasSuffix(strings.TrimSpace(string(state)), "ready")
	}
	s.Start(t)
	return s
}

// MariaDB runs a MariaDB with user root, who needs no password. What is committed survives a kill of
// the server, not one of the machine.
func MariaDB(t *testing.T) *Server {
	t.Helper()
	server := requirement.Tool(t, "mariadbd", "apt-get install mariadb-server")
	s := newServer(t, "mysql")
	s.Socket = filepath.Join(s.Dir, "socket")
	data := filepath.Join(s.Dir, "data")
	options := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + s.Dir, "--innodb-flush-log-at-trx-commit=2",
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
	s.run(t, requirement.Tool(t, "mariadb-install-db", "apt-get install mariadb-server"), append(options,
		"--auth-root-authentication-method=normal", "--skip-test-db")...)
	s.args = append(append([]string{server}, options...), "--socket="+s.Socket, "--skip-networking",
		"--pid-file="+filepath.Join(s.Dir, "pid"), "--skip-grant-tables", "--max-connections=200")
	s.Start(t)
	return s
}

// Redis runs an empty Redis that writes nothing to disk.
func Redis(t *testing.T) *Server {
	t.Helper()
	server := requirement.Tool(t, "redis-server", "apt-get install redis-server")
	s := newServer(t, "redis")
	s.Socket = filepath.Join(s.Dir, "socket")
	s.args = []string{server, "--port", "0", "--unixsocket", s.Socket, "--save", "", "--appendonly", "no", "--dir", s.Dir}
	s.Start(t)
	return s
}

// newServer makes a directory for a server, which runs as account where the test runs as root:
// database servers refuse root.
func newServer(t *testing.T, account string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "duepost-") // sockets need a short path
	if err != nil {
		t.Fatalf("make directory: %v", err)
	}
	s := &Server{Dir: dir, attr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	t.Cleanup(func() {
		s.Kill(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove directory: %v", err)
		}
	})
	if os.Getuid() != 0 {
		return s
	}
	u, err := user.Lookup(account)
	if err != nil {
		t.Fatalf("look up the user to run as: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatalf("give directory away: %v", err)
	}
	s.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return s
}

// run runs a program as the server's user.
func (s *Server) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr = s.Dir, &syscall.SysProcAttr{Credential: s.attr.Credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("run %s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}

// Start runs the server on its directory until the test ends, and returns when it takes clients.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.args[0], s.args[1:]...)
	s.process.Dir, s.process.SysProcAttr = s.Dir, s.attr
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	if err := s.process.Start(); err != nil {
		t.Fatalf("start %s: %v", s.args[0], err)
	}
	for began := time.Now(); ; {
		conn, err := net.Dial("unix", s.Socket)
		if err == nil {
			conn.Close()
			if s.ready == nil || s.ready() {
				return
			}
		}
		if time.Since(began) > startTimeout {
			s.Kill(t)
			t.Fatalf("wait for %s: %v\n%s", s.args[0], err, s.output.String())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Kill ends the server as a crash would. It does nothing if it does not run.
func (s *Server) Kill(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	// Postgres has a process for each connection; SIGQUIT ends them all at once.
	signal := syscall.SIGKILL
	if filepath.Base(s.args[0]) == "postgres" {
		signal = syscall.SIGQUIT
	}
	if err := s.process.Process.Signal(signal); err != nil {
		t.Errorf("kill server: %v", err)
	}
	_ = s.process.Wait() // killed
	s.process = nil
	if err := os.Remove(s.Socket); err != nil && !os.IsNotExist(err) {
		t.Errorf("remove socket: %v", fmt.Errorf("%s: %w", s.Socket, err))
	}
}
