package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/store"
)

// dataDirectory makes a directory with a few messages in it.
func dataDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(store.OS(), dir, store.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		m := &store.Message{Exchange: []byte("x"), RoutingKey: []byte("k"), Body: []byte("secret"), TTL: -1}
		_, lsn, err := s.Append(m, []store.Target{{Queue: 4, Pos: i}}, 1)
		if err == nil {
			err = s.Wait(t.Context(), lsn)
		}
		if err == nil {
			m.ExchangeID = 6
			_, _, err = s.AppendDelayed(m, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStoreCheck(t *testing.T) {
	t.Parallel()
	dir := dataDirectory(t)
	got := runWith(t, nil, "", "store", "check", dir)
	for _, want := range []string{"log: 1 segments", "pending: 5", "  exchange 6: 5", "  queue 4: 5", "damage: 0\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
		}
	}
	if got.code != exitDone || got.stderr != "" {
		t.Errorf("exit code %d, stderr %q, want 0 and nothing", got.code, got.stderr)
	}

	dump := runWith(t, nil, "", "store", "dump", "--limit", "1", dir)
	var first store.Dumped
	if err := json.Unmarshal([]byte(dump.stdout), &first); err != nil {
		t.Fatalf("%v: %q", err, dump.stdout)
	}
	name := filepath.Join(dir, first.File)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[first.Offset+first.Bytes-1] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got = runWith(t, nil, "", "store", "check", "--json", dir)
	var rep store.Report
	if err := json.Unmarshal([]byte(got.stdout), &rep); err != nil {
		t.Fatalf("%v: %q", err, got.stdout)
	}
	if len(rep.Damages) != 1 || rep.Damages[0].File != first.File || rep.Damages[0].Offset > first.Offset+first.Bytes || rep.Queues[4].Count != 4 {
		t.Errorf("report: %+v", rep)
	}
	if got.code != exitUnmet || !strings.Contains(got.stderr, "damage in 1 places") {
		t.Errorf("exit code %d, stderr %q, want %d and how much damage", got.code, got.stderr, exitUnmet)
	}
	got = runWith(t, nil, "", "store", "check", dir)
	if want := first.File + " at offset "; got.code != exitUnmet || !strings.Contains(got.stdout, want) {
		t.Errorf("exit code %d, stdout lacks %q:\n%s", got.code, want, got.stdout)
	}
}

func TestStoreDump(t *testing.T) {
	t.Parallel()
	dir := dataDirectory(t)
	all := runWith(t, nil, "", "store", "dump", dir)
	lines := strings.Split(strings.TrimSpace(all.stdout), "\n")
	if all.code != exitDone || len(lines) != 10 || strings.Contains(all.stdout, `"body"`) {
		t.Fatalf("exit code %d, want 10 lines without bodies:\n%s", all.code, all.stdout)
	}
	var third store.Dumped
	if err := json.Unmarshal([]byte(lines[2]), &third); err != nil {
		t.Fatal(err)
	}
	from := runWith(t, nil, "", "store", "dump", dir, "--from", third.File+":"+strconv.FormatInt(third.Offset, 10), "--limit", "2")
	if want := strings.Join(lines[2:4], "\n") + "\n"; from.stdout != want {
		t.Errorf("from the third, two:\n%swant:\n%s", from.stdout, want)
	}
	keys := runWith(t, nil, "", "store", "dump", dir, "--keys", "2", "--bodies")
	if strings.Count(keys.stdout, "\n") != 1 || !strings.Contains(keys.stdout, `"seq":2`) || !strings.Contains(keys.stdout, `"body":"c2VjcmV0"`) {
		t.Errorf("entry 2 with its body:\n%s", keys.stdout)
	}
	for args, want := range map[string]string{
		"--from log-0000000001:x": "is not FILE:OFFSET", "--limit=-1": "must not be negative",
	} {
		got := runWith(t, nil, "", append([]string{"store", "dump", dir}, strings.Fields(args)...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit code %d, stderr lacks %q: %s", args, got.code, want, got.stderr)
		}
	}
}

// TestStoreInUse: what a broker has open is left alone.
func TestStoreInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(store.OS(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	for _, verb := range []string{"check", "dump"} {
		got := runWith(t, nil, "", "store", verb, dir)
		if got.code != exitRefused || !strings.Contains(got.stderr, "in use") || !strings.Contains(got.stderr, "hint: stop the broker") {
			t.Errorf("%s: exit code %d, stderr %q", verb, got.code, got.stderr)
		}
	}
}
