package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// outcome is what a run of the program shows.
type outcome struct {
	code           int
	stdout, stderr string
}

// runWith runs the program in this process with an environment of its own.
func runWith(t *testing.T, env map[string]string, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := process{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr}
	for name, v := range env {
		p.environ = append(p.environ, name+"="+v)
	}
	code := run(t.Context(), args, p)
	return outcome{code, stdout.String(), stderr.String()}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"", "serve", "demo", "publish", "consume", "bench", "policy", "user", "permissions",
		"vhost", "definitions", "list", "close", "version"} {
		t.Run("duepost "+verb, func(t *testing.T) {
			t.Parallel()
			args := []string{"--help"}
			name := "duepost"
			if verb != "" {
				args, name = []string{verb, "--help"}, verb
			}
			got := runWith(t, nil, "", args...)
			if got.code != exitDone || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q, want 0 and nothing", got.code, got.stderr)
			}
			golden := filepath.Join("testdata", "help_"+name+".txt")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got.stdout), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.stdout); diff != "" {
				t.Errorf("%s, -want +got (go test -rewrite takes it over):\n%s", golden, diff)
			}
		})
	}
}

func TestNoVerbShowsHelp(t *testing.T) {
	t.Parallel()
	got := runWith(t, nil, "")
	if got.code != exitUsage || !strings.Contains(got.stdout, "Commands:") {
		t.Errorf("exit code %d, stdout %q, want 2 and the help", got.code, got.stdout)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"pubish", []string{"unexpected argument pubish", "hint: duepost --help"}},
		{"serve --nope", []string{"unknown flag --nope", "hint: duepost serve --help"}},
		{"serve --log-level loud", []string{"--log-level must be one of", `"loud"`}},
		{"serve --amqp-addr localhost", []string{`amqp-addr: "localhost" is not HOST:PORT`}},
		{"serve --stop-timeout soon", []string{"--stop-timeout", "soon"}},
		{"publish hello", []string{"needs --to QUEUE or --exchange NAME", "hint: duepost publish --in 5s --to orders hello"}},
		{"publish --to a --exchange b hello", []string{"--to", "--exchange", "can't be used together"}},
		{"publish --to a --key b hello", []string{"--key and --declare go with --exchange"}},
		{"publish --to a --in 5s --at 12:00 hello", []string{"--in", "--at", "can't be used together"}},
		{"publish --to a --in soon hello", []string{`"soon" is not a delay such as 5s`}},
		{"publish --to a --at soon hello", []string{`"soon" is not a time such as`}},
		{"publish --to a --count 0 hello", []string{"--count: is 0, must be at least 1"}},
		{"publish --to a --url http://x hello", []string{"--url", "amqp://USER:PASSWORD@HOST:PORT/VHOST"}},
		{"consume", []string{"needs --queue NAME or --bind EXCHANGE:KEY"}},
		{"consume --bind news", []string{`--bind: "news" is not EXCHANGE:KEY`}},
		{"publish --to a --in -5s hello", []string{`--in: "-5s" must be above 0`}},
		{"publish --to a --in -1d hello", []string{`--in: "-1d" must be above 0`}},
		{"publish --to a --count -1 hello", []string{"--count: is -1, must be at least 1"}},
		{"publish --to a -n -1 hello", []string{"--count: is -1, must be at least 1"}},
		{"publish --exchange a --declare bogus hello", []string{`--declare: "bogus" is not one of direct, fanout, topic, headers`}},
		{"serve --stop-timeout -5s", []string{"stop-timeout: is -5s, must be above 0"}},
		{"serve --max-parked -5", []string{"max-parked: is -5, must be at least 1"}},
		{"consume --queue a --count -1", []string{"must not be negative"}},
		{"consume --queue a --timeout -1s", []string{"must not be negative"}},
		{"bench --delay-min -5s", []string{"delays: from -5s to 20s"}},
		{"bench --size 8", []string{"size: is 8, must be at least 32"}},
		{"bench nonsense", []string{"nonsense"}},
		{"relay --gateway-only", []string{"need --gateway"}},
		{"relay --gateway 127.0.0.1:0 --gateway-tls-cert c.pem", []string{"must be set together"}},
		{"relay --gateway 127.0.0.1:0 --gateway-max-connections=-1", []string{"must not be negative"}},
		{"demo --pace 0", []string{"--pace: must be from 0.1 to 100"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			got := runWith(t, nil, "", strings.Fields(tt.args)...)
			if got.code != exitUsage {
				t.Errorf("exit code %d, want %d", got.code, exitUsage)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
				}
			}
		})
	}
}

func TestNoBroker(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"publish", "--to", "a", "hello"}, {"consume", "--queue", "a"}, {"bench", "plain"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			// Port 1 is reserved and nothing listens there.
			got := runWith(t, map[string]string{"DUEPOST_URL": "amqp://guest:guest@127.0.0.1:1/"}, "", args...)
			if got.code != exitFailed || !strings.Contains(got.stderr, "connect to 127.0.0.1:1:") ||
				!strings.Contains(got.stderr, "hint: nothing listens there") {
				t.Errorf("exit code %d, stderr:\n%s\nwant 1, the address and a hint", got.code, got.stderr)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"version", "--version"} {
		got := runWith(t, nil, "", form)
		if got.code != 0 || !strings.HasPrefix(got.stdout, "duepost ") || strings.Count(got.stdout, "\n") != 1 || got.stderr != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want one line", form, got.code, got.stdout, got.stderr)
		}
	}
}
