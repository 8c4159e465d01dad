package amqp

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// FuzzTable: decoding never panics; what Validate accepts decodes; encoding what
// was decoded is identity for tables written the way AppendTable does, and
// reaches such a table for all others.
func FuzzTable(f *testing.F) {
	for _, tc := range fieldCases() {
		b, err := AppendField(nil, tc.name, tc.value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\x01bt\x02\x01aL\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte("\x01aA\x00\x00\x00\x08F\x00\x00\x00\x03\x01b!"))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw := RawTable(b)
		table, err := raw.Decode()
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != SyntaxError {
				t.Fatalf("got %v, want an error with code 502", err)
			}
			raw.Lookup("a")
			raw.AppendWithout(nil, "a")
			return
		}
		once, err := AppendTable(nil, table)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		if len(once)-4 > len(b) {
			t.Fatalf("%d octets became %d", len(b), len(once)-4)
		}
		if isCanonical(raw) && !bytes.Equal(once[4:], b) {
			t.Fatalf("got %q, want %q", once[4:], b)
		}
		again, err := RawTable(once[4:]).Decode()
		if err != nil {
			t.Fatalf("decode again: %v", err)
		}
		twice, err := AppendTable(nil, again)
		if err != nil {
			t.Fatalf("encode again: %v", err)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("once %q, twice %q", once, twice)
		}
		for key, v := range raw.All() {
			if w, ok := raw.Lookup(string(key)); !ok || w.Type != v.Type && isCanonical(raw) {
				t.Fatalf("key %q is not found", key)
			}
		}
	})
}

// isCanonical reports whether AppendTable would have written the table so.
func isCanonical(t RawTable) bool {
	last, first := "", true
	for key, v := range t.All() {
		if !first && string(key) <= last || !isCanonicalValue(v) {
			return false
		}
		last, first = string(key), false
	}
	return true
}

func isCanonicalValue(v RawValue) bool {
	switch v.Type {
	case TypeBool:
		return v.Data[0] <= 1
	case TypeInt64Alt:
		return false
	case TypeFloat32, TypeFloat64:
		f, _ := v.Float()
		return !math.IsNaN(f) // a NaN's payload may change on its way through a register
	case TypeArray:
		for e := range v.Elements() {
			if !isCanonicalValue(e) {
				return false
			}
		}
	case TypeTable:
		return isCanonical(v.Data)
	}
	return true
}

// FuzzProperties: decoding never panics, and encoding what was decoded is
// identity.
func FuzzProperties(f *testing.F) {
	p := allProperties()
	f.Add(p.Append(nil))
	p.Flags = FlagHeaders | FlagDeliveryMode
	f.Add(p.Append(nil))
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p Properties
		if err := p.Decode(raw); err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != SyntaxError {
				t.Fatalf("got %v, want an error with code 502", err)
			}
			return
		}
		if got := p.Append(nil); !bytes.Equal(got, raw) {
			t.Fatalf("got %q, want %q", got, raw)
		}
	})
}
