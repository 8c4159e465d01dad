package headers

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

// Not parallel: testing.AllocsPerRun counts the whole process.
func TestNoAllocationPerMessage(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for name, table := range map[string]amqp.Table{
		"no headers": {},
		"other":      {"a": "b", "x-other": int32(1), "trace": amqp.Table{"id": "x"}},
		"x-delay":    {"a": "b", XDelay: int32(5000), CC: []any{"k"}},
		"string":     {XDelay: "5000", DeliveryDelay: 2.5},
		"instant":    {DeliveryTime: int64(accepted + 5000)},
		"key":        {XDelay: int32(5000), DelayKey: "order 17"},
		"cancel":     {DelayKey: "order 17", DelayCancel: true},
		"served":     {XDelay: int64(-5000)},
	} {
		h := raw(t, table)
		got := testing.AllocsPerRun(100, func() {
			d, err := ParseDelay(h, accepted)
			if err != nil {
				t.Error(err)
			}
			buf = AppendReleased(buf[:0], h, d)
			r, err := ParseRoutes(h)
			if err != nil {
				t.Error(err)
			}
			for key := range r.All() {
				buf = append(buf, key...)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

func BenchmarkParseDelay(b *testing.B) {
	for name, table := range map[string]amqp.Table{
		"absent":  {"a": "b", "trace": "0123456789abcdef"},
		"present": {"a": "b", XDelay: int32(5000)},
	} {
		b.Run(name, func(b *testing.B) {
			h := raw(b, table)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseDelay(h, accepted); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
