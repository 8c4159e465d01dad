package amqp

import (
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fieldCases hold every field type, its value and its bytes, written down by
// hand from the specification and RabbitMQ's errata.
func fieldCases() []struct {
	name  string
	value any
	bytes string // hex, type octet and payload
} {
	return []struct {
		name  string
		value any
		bytes string
	}{
		{"true", true, "74 01"},
		{"false", false, "74 00"},
		{"int8", int8(-2), "62 fe"},
		{"uint8", uint8(254), "42 fe"},
		{"int16", int16(-2), "73 fffe"},
		{"uint16", uint16(65534), "75 fffe"},
		{"int32", int32(-2), "49 fffffffe"},
		{"uint32", uint32(4294967294), "69 fffffffe"},
		{"int64", int64(-2), "6c fffffffffffffffe"},
		{"float32", float32(1.5), "66 3fc00000"},
		{"float64", 1.5, "64 3ff8000000000000"},
		{"decimal", Decimal{2, -314}, "44 02 fffffec6"},
		{"string", "héj", "53 00000004 68c3a96a"},
		{"empty string", "", "53 00000000"},
		{"bytes", []byte{0, 255}, "78 00000002 00ff"},
		{"array", []any{int8(1), "a", nil}, "41 00000009 6201 5300000001 61 56"},
		{"empty array", []any{}, "41 00000000"},
		{"time", time.Unix(1700000000, 0).UTC(), "54 000000006553f100"},
		{"time before 1970", time.Unix(-1, 0).UTC(), "54 ffffffffffffffff"},
		{"table", Table{"k": true}, "46 00000004 016b 7401"},
		{"void", nil, "56"},
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFieldBytes(t *testing.T) {
	t.Parallel()
	for _, tc := range fieldCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			want := append([]byte("\x03key"), unhex(t, tc.bytes)...)
			got, err := AppendField(nil, "key", tc.value)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("encoded (-want +got):\n%s", d)
			}
			table, err := RawTable(want).Decode()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(Table{"key": tc.value}, table); d != "" {
				t.Errorf("decoded (-want +got):\n%s", d)
			}
		})
	}
}

func TestFieldsOnlyWritten(t *testing.T) {
	t.Parallel()
	raw := RawTable("\x01kt\x01")
	for _, tc := range []struct {
		name  string
		value any
		want  any
	}{
		{"int", -7, int64(-7)},
		{"uint", uint(7), int64(7)},
		{"uint64", uint64(math.MaxInt64), int64(math.MaxInt64)},
		{"plain map", map[string]any{"k": true}, Table{"k": true}},
		{"raw table", raw, Table{"k": true}},
		{"raw value", RawValue{TypeInt16, []byte{1, 0}}, int16(256)},
		{"raw string", RawValue{TypeString, []byte("ab")}, "ab"},
	} {
		b, err := AppendField(nil, "key", tc.value)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		got, err := RawTable(b).Decode()
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if d := cmp.Diff(Table{"key": tc.want}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

func TestFieldsReadLeniently(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, bytes string
		want        any
	}{
		{"L is a signed 64-bit integer, too", "4c ffffffffffffffff", int64(-1)},
		{"any octet but 0 is true", "74 ff", true},
	} {
		got, err := RawTable(append([]byte("\x01k"), unhex(t, tc.bytes)...)).Decode()
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if d := cmp.Diff(Table{"k": tc.want}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

func TestTableRoundTripAndOrder(t *testing.T) {
	t.Parallel()
	table := Table{}
	for _, tc := range fieldCases() {
		table[tc.name] = tc.value
	}
	table["nested"] = []any{Table{"b": []any{int8(1)}, "a": nil}}
	first, err := AppendTable([]byte("before"), table)
	if err != nil {
		t.Fatal(err)
	}
	content, rest, ok := CutLongStr(first[len("before"):])
	if !ok || len(rest) != 0 {
		t.Fatalf("length is wrong: ok %v, %d octets left", ok, len(rest))
	}
	got, err := RawTable(content).Decode()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(table, got); d != "" {
		t.Errorf("decoded (-want +got):\n%s", d)
	}
	last := ""
	for key := range RawTable(content).All() {
		if string(key) <= last {
			t.Errorf("key %q comes after %q", key, last)
		}
		last = string(key)
	}
}

func TestFirstOfTwoEqualKeysCounts(t *testing.T) {
	t.Parallel()
	raw := RawTable("\x01kb\x01\x01kb\x02")
	table, err := raw.Decode()
	if err != nil {
		t.Fatal(err)
	}
	v, _ := raw.Lookup("k")
	n, _ := v.Int()
	if n != 1 || table["k"] != int8(1) {
		t.Errorf("got %d from Lookup and %v from Decode, want 1", n, table["k"])
	}
}

func TestMalformedTables(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, table, want string
	}{
		{"no value", "\x01k", "field 'k': value is missing"},
		{"name cut off", "\x05k", "field name is cut off"},
		{"unknown type", "\x01kU\x00\x01", `field 'k': unknown type 'U', allowed are t b B`},
		{"type octet 0", "\x01k\x00", `field 'k': unknown type '\x00'`},
		{"int cut off", "\x01kI\x00\x00\x00", "field 'k': value of type signedint is cut off"},
		{"string beyond the end", "\x01kS\xff\xff\xff\xffx", "value of type longstr is cut off"},
		{"second field", "\x01at\x01\x01bT", "field 'b': value of type timestamp is cut off"},
		{"in a table", "\x01aF\x00\x00\x00\x04\x01bs\x00", "field 'a.b': value of type short"},
		{"in the array", "\x01aA\x00\x00\x00\x03t\x01Z", "field 'a[1]': unknown type 'Z'"},
		{"deep", "\x01aA\x00\x00\x00\x08F\x00\x00\x00\x03\x01b!", "field 'a[0].b': unknown type '!'"},
		{"array in array", "\x01aA\x00\x00\x00\x06A\x00\x00\x00\x01!", "field 'a[0][0]': unknown type"},
		{"ugly name", "\x02\x00\xffI", `field '\x00\xff': value of type signedint`},
	} {
		err := RawTable(tc.table).Validate()
		var e *Error
		if !errors.As(err, &e) || e.Code != SyntaxError {
			t.Errorf("%s: got %v, want an *Error with code 502", tc.name, err)
			continue
		}
		if !strings.Contains(e.Text, tc.want) {
			t.Errorf("%s: got %q, want %q in it", tc.name, e.Text, tc.want)
		}
		if _, err := RawTable(tc.table).Decode(); err == nil {
			t.Errorf("%s: Decode accepts what Validate refuses", tc.name)
		}
	}
}

// nested returns a table that holds depth-1 tables, or arrays, in each other.
func nested(depth int, with any) Table {
	if depth == 1 {
		return Table{}
	}
	if _, arrays := with.([]any); arrays {
		var v any = []any{}
		for range depth - 2 {
			v = []any{v}
		}
		return Table{"k": v}
	}
	return Table{"k": nested(depth-1, with)}
}

func TestNestingLimit(t *testing.T) {
	t.Parallel()
	for _, with := range []any{Table{}, []any{}} {
		b, err := AppendTable(nil, nested(MaxDepth, with))
		if err != nil {
			t.Fatalf("encode at the limit: %v", err)
		}
		if err := RawTable(b[4:]).Validate(); err != nil {
			t.Errorf("decode at the limit: %v", err)
		}
		if _, err := AppendTable(nil, nested(MaxDepth+1, with)); err == nil {
			t.Error("encode beyond the limit: no error")
		}
		beyond, err := AppendField(nil, "outer", RawTable(b[4:]))
		if err != nil {
			t.Fatal(err)
		}
		err = RawTable(beyond).Validate()
		if err == nil || !strings.Contains(err.Error(), "32 levels are allowed") {
			t.Errorf("decode beyond the limit: got %v", err)
		}
	}
}

func TestThousandLevels(t *testing.T) {
	t.Parallel()
	raw := RawTable{}
	for range 1000 {
		var err error
		if raw, err = AppendField(nil, "k", raw); err != nil {
			t.Fatal(err)
		}
	}
	err := raw.Validate()
	if err == nil || !strings.Contains(err.Error(), "field 'k.k.k") {
		t.Fatalf("got %v, want an error with the way to the field", err)
	}
	if n := len(err.Error()); n > MaxShortStr {
		t.Errorf("error has %d octets, which no reply text holds", n)
	}
}

func TestUnencodable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		table Table
		want  string
	}{
		{"type", Table{"k": struct{}{}}, "field 'k': type struct {} has no AMQP field type"},
		{"in an array", Table{"k": []any{1, struct{}{}}}, "element 1"},
		{"uint64", Table{"k": uint64(math.MaxInt64) + 1}, "does not fit"},
		{"long name", Table{strings.Repeat("k", 256): nil}, "256 octets, 255 are allowed"},
	} {
		_, err := AppendTable(nil, tc.table)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q in it", tc.name, err, tc.want)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	b, err := AppendTable(nil, Table{"a": "x", "key": int32(5), "z": Table{"in": true}})
	if err != nil {
		t.Fatal(err)
	}
	raw := RawTable(b[4:])
	v, ok := raw.Lookup("key")
	if n, isInt := v.Int(); !ok || !isInt || n != 5 {
		t.Errorf("key: got %d %v %v, want 5", n, isInt, ok)
	}
	for _, absent := range []string{"", "ke", "keyy", "in", "KEY"} {
		if _, ok := raw.Lookup(absent); ok {
			t.Errorf("%q is found", absent)
		}
	}
	v, _ = raw.Lookup("z")
	inner, ok := v.Table()
	if !ok {
		t.Fatal("z is no table")
	}
	if v, ok := inner.Lookup("in"); !ok || v.Type != TypeBool {
		t.Errorf("in: got %v %v", v, ok)
	}
}

func TestAppendWithout(t *testing.T) {
	t.Parallel()
	raw := RawTable("\x01bt\x02\x01aV\x01cb\x01\x01aV")
	for _, tc := range []struct {
		keys []string
		want string
	}{
		{nil, string(raw)},
		{[]string{"x"}, string(raw)},
		{[]string{"a"}, "\x01bt\x02\x01cb\x01"},
		{[]string{"b", "c"}, "\x01aV\x01aV"},
		{[]string{"a", "b", "c"}, ""},
	} {
		got := string(raw.AppendWithout([]byte("x"), tc.keys...))
		if got != "x"+tc.want {
			t.Errorf("without %q: got %q, want %q", tc.keys, got[1:], tc.want)
		}
	}
}
