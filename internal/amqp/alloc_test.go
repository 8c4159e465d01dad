package amqp

import "testing"

// Not parallel: testing.AllocsPerRun counts the whole process.
func TestNoAllocationPerMessage(t *testing.T) {
	full := allProperties()
	table, err := AppendTable(nil, Table{
		"a": "x", "n": int32(1), "t": Table{"k": []any{"v"}}, "z": nil,
	})
	if err != nil {
		t.Fatal(err)
	}
	full.Headers = table[4:]
	raw := full.Append(nil)
	headers := full.Headers
	var p Properties
	one := RawValue{TypeInt8, []byte{1}}
	buf := make([]byte, 0, 4096)
	n := 0
	for name, run := range map[string]func(){
		"decode properties": func() {
			if err := p.Decode(raw); err != nil {
				t.Error(err)
			}
		},
		"append properties": func() { buf = full.Append(buf[:0]) },
		"validate":          func() { _ = headers.Validate() },
		"look up": func() {
			v, _ := headers.Lookup("n")
			i, _ := v.Int()
			n += int(i)
		},
		"all": func() {
			for key := range headers.All() {
				n += len(key)
			}
		},
		"append without": func() { buf = headers.AppendWithout(buf[:0], "a", "z") },
		"equal": func() {
			v, _ := headers.Lookup("n")
			if !v.Equal(one) {
				t.Error("not equal")
			}
		},
	} {
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

func BenchmarkDecodeProperties(b *testing.B) {
	for _, tc := range []struct {
		name  string
		flags uint16
	}{
		{"mode", FlagDeliveryMode | FlagContentType},
		{"headers", FlagDeliveryMode | FlagContentType | FlagHeaders},
		{"all", ^flagsUnused},
	} {
		b.Run(tc.name, func(b *testing.B) {
			full := allProperties()
			full.Flags = tc.flags
			raw := full.Append(nil)
			var p Properties
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
