package headers

import (
	"bytes"
	"errors"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

// FuzzHeaders: reading never panics; a refusal is 406; what is delayed is due
// within bounds and, once released, is sound and never delayed again, and all
// other headers are as they were.
func FuzzHeaders(f *testing.F) {
	for _, table := range []amqp.Table{
		{XDelay: int32(5)}, {DeliveryDelay: "5"}, {DeliveryTime: int64(accepted + 5)},
		{XDelay: 1.5, CC: []any{"a"}, BCC: []any{"b"}}, {XDelay: int64(-5), DeliveryTime: "9"},
	} {
		f.Add([]byte(raw(f, table)), int64(accepted))
	}
	f.Fuzz(func(t *testing.T, b []byte, now int64) {
		h := amqp.RawTable(b)
		if h.Validate() != nil || now < 0 || now > 1<<53 {
			return
		}
		if _, err := ParseRoutes(h); err != nil {
			checkRefusal(t, err)
		}
		d, err := ParseDelay(h, now)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if len(d.Key) > MaxKey || (d.Cancel && (d.Key == nil || d.IsDelayed())) {
			t.Fatalf("accepted %d: %+v", now, d)
		}
		if !d.IsDelayed() {
			return
		}
		if d.Millis < 1 || d.Millis > MaxDelay || d.Due != now+d.Millis {
			t.Fatalf("accepted %d: %+v", now, d)
		}
		released := amqp.RawTable(AppendReleased(nil, h, d))
		if err := released.Validate(); err != nil {
			t.Fatalf("released %q: %v", released, err)
		}
		if again, err := ParseDelay(released, now); err != nil || again.IsDelayed() {
			t.Fatalf("released %q is delayed again: %+v, %v", released, again, err)
		}
		others := h.AppendWithout(nil, XDelay, DeliveryDelay)
		if got := released.AppendWithout(nil, XDelay, DeliveryDelay); !bytes.Equal(got, others) {
			t.Fatalf("other headers were %q and are %q", others, got)
		}
	})
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var e *amqp.Error
	if !errors.As(err, &e) || e.Code != amqp.PreconditionFailed {
		t.Fatalf("got %v, want an error with code 406", err)
	}
}
