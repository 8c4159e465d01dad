package server

import (
	"errors"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

// Only the answer "there is none" to a question is not worth a warning; to clients it is the
// same error.
func TestPassively(t *testing.T) {
	t.Parallel()
	absent := amqp.Errorf(amqp.NotFound, "no queue")
	locked := amqp.Errorf(amqp.ResourceLocked, "locked")
	for _, tt := range []struct {
		name    string
		passive bool
		err     error
		absent  bool
	}{
		{"asked, none there", true, absent, true},
		{"asked, locked", true, locked, false},
		{"wanted, none there", false, absent, false},
	} {
		got := passively(tt.passive, tt.err)
		if errors.As(got, new(*absentError)) != tt.absent || !errors.Is(got, tt.err) {
			t.Errorf("%s: passively = %#v, want absent %v and the error itself in it", tt.name, got, tt.absent)
		}
	}
	if passively(true, nil) != nil {
		t.Error("no error became one")
	}
}
