package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadKept(t *testing.T) {
	t.Parallel()
	got, err := ReadKept([]byte(`
exchanges:
  - name: orders
    type: topic
    alternate-exchange: lost
  - {name: orders, vhost: shop}
`))
	want := []Kept{
		{Exchange{Name: "orders", Type: "topic", Durable: true, Alternate: "lost"}, ""},
		{Exchange{Name: "orders", Type: "direct", Durable: true}, "shop"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, want and got: %s", err, diff)
	}
	if got, err := ReadKept(nil); err != nil || len(got) != 0 {
		t.Errorf("an empty file has %v, %v", got, err)
	}
}

// Every fault is told, with its line, and nothing is read.
func TestReadKeptTellsEveryFault(t *testing.T) {
	t.Parallel()
	for text, faults := range map[string][]string{
		"exchanges:\n- name: a\n  typ: topic\n- nam: b\n": {"line 3: field typ not found", "line 4: field nam not found", "allowed are"},
		"exchanges:\n- name: a\n  type: [topic]\n":        {"line 3: cannot unmarshal"},
		"exchanges: 5\n": {"line 1: cannot unmarshal"},
		"queues: []\n":   {"field queues not found"},
		"exchanges:\n- name: amq.direct\n- name: a\n  type: x\n- name: a.duepost\n- {}\n": {"line 2: ", "line 3: ", "line 5: ", "line 6: "},
		"exchanges:\n- name: a\n- name: b\n- name: a\n":                                   {`line 4: exchange "a" is there twice`},
		"exchanges:\n- name: 'a\n":                                                        {"yaml: "},
	} {
		got, err := ReadKept([]byte(text))
		if err == nil || got != nil {
			t.Errorf("%q: %v, %v, want only an error", text, got, err)
			continue
		}
		for _, fault := range faults {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("%q: %v, want it to say %q", text, err, fault)
			}
		}
	}
}
