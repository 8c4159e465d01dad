package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/daemon"
)

// startAdministered serves in this process, with the management API, and returns the environment
// that leads verbs to it.
func startAdministered(t *testing.T) map[string]string {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.AMQPAddr, cfg.HTTPAddr = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	d, err := daemon.Start(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return map[string]string{
		"DUEPOST_URL":     "amqp://guest:guest@" + d.AMQPAddr().String() + "/",
		"DUEPOST_API_URL": "http://" + d.HTTPAddr().String(),
	}
}

// Every command of docs/ADMINISTRATION.md is run as it stands there, one after the other.
func TestAdministrationDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "ADMINISTRATION.md"))
	if err != nil {
		t.Fatal(err)
	}
	env := startAdministered(t)
	dir := t.TempDir()
	want := map[string]string{ // what the commands print that tell something
		"permissions list -p shop":       `(?m)^orders +\^orders +\.\* +\.\*$`,
		"permissions list-topic -p shop": `(?m)^orders +amq\.topic +\^orders\\\. +\.\*$`,
		"user list":                      `(?m)^guest +administrator\norders +management$`,
		"vhost list --format json":       `(?s)"default_queue_type": "quorum".*"description": "the web shop"`,
		"policy list -p shop":            `(?m)^bounded +\^orders +queues +\{"max-length":1000,"overflow":"reject-publish"\} +5$`,
		"policy list --operator":         `(?m)^ceiling +\.\* +queues +\{"max-length-bytes":1000000\} +0$`,
		"definitions export -p shop":     `"queues": \[\]`,
		"list users":                     `(?m)^orders +monitoring$`,
		"list vhosts":                    `(?m)^shop +the old web shop +quorum +0$|(?m)^shop +the old web shop`,
		"list exchanges":                 `(?m)^amq\.topic +topic +true$`,
		"list permissions":               `(?m)^guest +\.\* +\.\* +\.\*$`,
	}
	ran := 0
	for _, line := range readmeCommands(text) {
		args := words(line)
		if args[0] != "duepost" {
			t.Fatalf("%q is no command of duepost", line)
		}
		for i, a := range args {
			if a == "backup.json" {
				args[i] = filepath.Join(dir, a)
			}
		}
		out := mustRun(t, env, "", args[1:]...)
		if pattern := want[strings.TrimPrefix(line, "duepost ")]; !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("%s printed\n%swant %s", line, out, pattern)
		}
		ran++
	}
	if ran < 30 {
		t.Errorf("%d commands were run, want all of the document", ran)
	}
	if out := mustRun(t, env, "", "list", "vhosts"); strings.Contains(out, "shop") {
		t.Errorf("after the document there is\n%s", out)
	}
}

// words cuts a line as a shell does, with single quotes.
func words(line string) (all []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		all = append(all, m[1]+m[2])
	}
	return all
}

func TestPermissionsMayBeEmpty(t *testing.T) {
	t.Parallel()
	env := startAdministered(t)
	mustRun(t, env, "from input\n", "user", "add", "u")
	mustRun(t, env, "", "permissions", "set", "u", "", "^w", "")
	out := mustRun(t, env, "", "list", "permissions", "--format", "json")
	var all []map[string]string
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[1]["user"] != "u" || all[1]["configure"] != "" || all[1]["write"] != "^w" {
		t.Errorf("permissions are %v", all)
	}
	env["DUEPOST_USER"], env["DUEPOST_PASSWORD"] = "u", "from input"
	got := runWith(t, env, "", "list", "queues")
	if got.code != exitFailed || !strings.Contains(got.stderr, "Not management user\nhint: user u lacks the tag") {
		t.Errorf("exit code %d, %s", got.code, got.stderr)
	}
}

func TestSetTagsKeepsThePassword(t *testing.T) {
	t.Parallel()
	env := startAdministered(t)
	mustRun(t, env, "", "user", "add", "u", "secret", "--tags", "management")
	mustRun(t, env, "", "user", "set-tags", "u", "administrator")
	mustRun(t, env, "", "user", "list", "--user", "u", "--password", "secret")
	mustRun(t, env, "", "user", "change-password", "u", "other")
	if out := mustRun(t, env, "", "user", "list", "-u", "u", "--password", "other"); !strings.Contains(out, "administrator") {
		t.Errorf("after change-password the tags are gone:\n%s", out)
	}
}

// What was typed wrong is named, and what can be done about it.
func TestAdministrationErrors(t *testing.T) {
	t.Parallel()
	env := startAdministered(t)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"vhost add /", exitFailed, `there is a vhost "/"`},
		{"vhost delete nope", exitFailed, `there is no vhost "nope"`},
		{"vhost update nope", exitFailed, `there is no vhost "nope"`},
		{"vhost set-limits / nonsense", exitUsage, "limits: is no JSON object of numbers"},
		{"vhost set-limits / {\"max-foo\":1}", exitFailed, "there is no limit 'max-foo'"},
		{"user add guest x", exitFailed, `there is a user "guest"`},
		{"user add u", exitUsage, "the password is empty"},
		{"user delete nope", exitFailed, `there is no user "nope"`},
		{"user set-tags nope", exitFailed, `there is no user "nope"`},
		{"user change-password nope x", exitFailed, `there is no user "nope"`},
		{"permissions set guest ( . .", exitFailed, "configure: invalid regular expression '('"},
		{"permissions set nope . . .", exitFailed, "vhost_or_user_not_found"},
		{"permissions clear nope", exitFailed, `there is no permission of user "nope" in vhost "/"`},
		{"permissions clear-topic guest", exitFailed, `there is no topic permission of user "guest" in vhost "/"`},
		{"policy set p . nonsense", exitUsage, "definition: is no JSON object"},
		{"policy set p ( {\"max-length\":1}", exitFailed, "pattern should be regular expression but is invalid"},
		{"policy set p . {\"max-length\":1} -p nope", exitFailed, "vhost_not_found"},
		{"policy delete p", exitFailed, `there is no policy "p" in vhost "/"`},
		{"policy set p . {\"max-length\":1} --apply-to nonsense", exitUsage, "--apply-to must be one of"},
		{"list nonsense", exitUsage, "must be one of"},
		{"list queues -p nope", exitFailed, `there is no vhost "nope"`},
		{"close connection none", exitFailed, `there is no connection "none"`},
		{"definitions import none.json", exitFailed, "none.json: no such file"},
		{"definitions export -p nope", exitFailed, `there is no vhost "nope"`},
		{"user list --password wrong", exitFailed, "--user or --password is not right"},
		{"user list --api-url http://127.0.0.1:1", exitFailed, "hint: nothing listens there"},
	} {
		got := runWith(t, env, "", strings.Fields(tt.args)...)
		if got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("duepost %s: exit code %d, %s, want %d with %q", tt.args, got.code, got.stderr, tt.code, tt.want)
		}
	}
	got := runWith(t, env, `{"queues":[{"name":"q","vhost":"nope"},{"vhost":"/"}]}`, "definitions", "import")
	if got.code != exitFailed || strings.Count(got.stderr, "queues[") < 2 {
		t.Errorf("import of a half wrong file: exit code %d, %s, want every fault", got.code, got.stderr)
	}
}

func TestCloseTellsTheReason(t *testing.T) {
	t.Parallel()
	env := startAdministered(t)
	for _, args := range [][]string{
		{"close", "connection", "NAME", "one reason"},
		{"close", "all-connections", "one reason"},
		{"close", "all-connections", "-p", "/", "one reason"},
		{"close", "all-user-connections", "guest", "one reason"},
	} {
		conn, err := amqp.Dial(env["DUEPOST_URL"])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		closed := conn.NotifyClose(make(chan *amqp.Error, 1))
		name := strings.Fields(mustRun(t, env, "", "list", "connections", "name"))[1:]
		for i := range args {
			if args[i] == "NAME" {
				args[i] = strings.Join(name, " ")
			}
		}
		mustRun(t, env, "", args...)
		if err := <-closed; err == nil || err.Reason != "CONNECTION_FORCED - one reason" {
			t.Errorf("%v: closed with %v", args, err)
		}
	}
}

func TestTableIsSafeForTerminals(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	rows := []map[string]any{
		{"name": "a\x1b[31m", "n": 3.0, "list": []any{"x", "y"}, "o": map[string]any{"k": true}},
		{"name": "b", "o": map[string]any{}},
	}
	if err := (&table{[]string{"name", "n", "list", "o", "o.k"}, rows}).write(&b, "table"); err != nil {
		t.Fatal(err)
	}
	want := "name         n  list  o           o.k\n" + `"a\x1b[31m"  3  x,y   {"k":true}  true` + "\nb\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
