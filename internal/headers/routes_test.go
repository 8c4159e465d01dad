package headers

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		table        amqp.Table
		want         []string
		isEmpty, bcc bool
	}{
		{"none", amqp.Table{"cc": []any{"a"}, "other": "b"}, nil, true, false},
		{"CC", amqp.Table{CC: []any{"a", "b"}}, []string{"a", "b"}, false, false},
		{"BCC", amqp.Table{BCC: []any{"c"}}, []string{"c"}, false, true},
		{"both", amqp.Table{BCC: []any{"c"}, CC: []any{"a"}}, []string{"a", "c"}, false, true},
		{"empty arrays", amqp.Table{BCC: []any{}, CC: []any{}}, nil, false, true},
		{
			"strangers among them", amqp.Table{CC: []any{int32(1), "a", nil, []byte("b")}},
			[]string{"a"}, false, false,
		},
	} {
		r, err := ParseRoutes(raw(t, tc.table))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var got []string
		for key := range r.All() {
			got = append(got, string(key))
		}
		if !slices.Equal(got, tc.want) || r.IsEmpty() != tc.isEmpty || r.HasBCC() != tc.bcc {
			t.Errorf("%s: got %q, empty %v, bcc %v", tc.name, got, r.IsEmpty(), r.HasBCC())
		}
	}
}

func TestRoutesStop(t *testing.T) {
	t.Parallel()
	r, err := ParseRoutes(raw(t, amqp.Table{BCC: []any{"b"}, CC: []any{"a", "a"}}))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range r.All() {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d keys after one was enough", n)
	}
}

func TestRefusedRoutes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{CC, BCC} {
		for _, value := range []any{"key", nil, int32(1), amqp.Table{}} {
			_, err := ParseRoutes(raw(t, amqp.Table{name: value}))
			var e *amqp.Error
			want := "header '" + name + "' has type " + amqp.TypeNameOf(value) + ", allowed is an array"
			if !errors.As(err, &e) || e.Code != amqp.PreconditionFailed || !strings.Contains(e.Text, want) {
				t.Errorf("%s of %T: got %v, want code 406 and %q", name, value, err, want)
			}
		}
	}
}
