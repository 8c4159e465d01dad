package amqp

import (
	"slices"
	"testing"
	"time"
)

// encoded returns v as it would stand in a table.
func encoded(t testing.TB, v any) RawValue {
	t.Helper()
	b, err := AppendField(nil, "", v)
	if err != nil {
		t.Fatal(err)
	}
	raw, _, ok := cutValue(b[1:])
	if !ok {
		t.Fatalf("%v: cut value %q", v, b)
	}
	return raw
}

func TestIntOfEveryWidth(t *testing.T) {
	t.Parallel()
	for _, v := range []any{int8(100), uint8(100), int16(100), uint16(100), int32(100), uint32(100),
		int64(100), RawValue{TypeInt64Alt, []byte{0, 0, 0, 0, 0, 0, 0, 100}}} {
		if n, ok := encoded(t, v).Int(); !ok || n != 100 {
			t.Errorf("%T: got %d %v, want 100", v, n, ok)
		}
	}
	for _, v := range []any{int8(-1), int16(-1), int32(-1), int64(-1)} {
		if n, ok := encoded(t, v).Int(); !ok || n != -1 {
			t.Errorf("%T: got %d %v, want -1", v, n, ok)
		}
	}
	for _, v := range []any{nil, true, 1.0, "1", []byte{1}, []any{}, Table{}, Decimal{0, 1},
		time.Unix(1, 0)} {
		if n, ok := encoded(t, v).Int(); ok {
			t.Errorf("%T is taken for the integer %d", v, n)
		}
	}
}

func TestOtherAccessors(t *testing.T) {
	t.Parallel()
	if f, ok := encoded(t, float32(0.5)).Float(); !ok || f != 0.5 {
		t.Errorf("float32: got %v %v", f, ok)
	}
	if f, ok := encoded(t, 0.1).Float(); !ok || f != 0.1 {
		t.Errorf("float64: got %v %v", f, ok)
	}
	if s, ok := encoded(t, "s").Str(); !ok || string(s) != "s" {
		t.Errorf("string: got %q %v", s, ok)
	}
	if _, ok := encoded(t, []byte("s")).Str(); ok {
		t.Error("a byte array is taken for a string")
	}
	if b, ok := encoded(t, true).Bool(); !ok || !b {
		t.Errorf("bool: got %v %v", b, ok)
	}
	if at, ok := encoded(t, time.Unix(5, 0)).Time(); !ok || at.Unix() != 5 {
		t.Errorf("time: got %v %v", at, ok)
	}
	var got []int64
	for e := range encoded(t, []any{int8(1), int64(2)}).Elements() {
		n, _ := e.Int()
		got = append(got, n)
	}
	if !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("elements: got %v", got)
	}
	for range encoded(t, "no array").Elements() {
		t.Error("a string has elements")
	}
}

func TestMalformedValuesAreNothing(t *testing.T) {
	t.Parallel()
	for typ := range 256 {
		for _, data := range [][]byte{nil, {1}, {1, 2, 3}} {
			v := RawValue{byte(typ), data}
			v.Int()
			v.Float()
			v.Bool()
			v.Time()
			v.Decode()
			v.Equal(RawValue{TypeInt8, []byte{1}})
		}
	}
}

// equalities are pairs of values and whether RabbitMQ takes them for the same.
func equalities() []struct {
	a, b any
	want bool
} {
	return []struct {
		a, b any
		want bool
	}{
		{int8(5), int64(5), true},
		{uint32(5), int16(5), true},
		{int8(-1), uint8(255), false},
		{float32(0.5), 0.5, true},
		{int8(1), 1.0, true},
		{int8(1), 1.5, false},
		{int8(1), true, false},
		{int8(1), "1", false},
		{"a", "a", true},
		{"a", "b", false},
		{"a", []byte("a"), false},
		{[]byte("a"), []byte("a"), true},
		{true, true, true},
		{true, false, false},
		{nil, nil, true},
		{nil, false, false},
		{Decimal{1, 10}, Decimal{1, 10}, true},
		{Decimal{1, 10}, Decimal{0, 1}, false},
		{time.Unix(1, 0), time.Unix(1, 0).UTC(), true},
		{time.Unix(1, 0), time.Unix(2, 0), false},
		{time.Unix(1, 0), int64(1), false},
		{[]any{int8(1), "a"}, []any{int32(1), "a"}, true},
		{[]any{int8(1)}, []any{int8(1), int8(1)}, false},
		{[]any{"a", "b"}, []any{"b", "a"}, false},
		{Table{"a": int8(1), "b": nil}, Table{"b": nil, "a": int64(1)}, true},
		{Table{"a": int8(1)}, Table{"a": int8(2)}, false},
		{Table{"a": nil}, Table{"b": nil}, false},
		{Table{"a": nil}, Table{"a": nil, "b": nil}, false},
		{Table{}, []any{}, false},
	}
}

func TestEquality(t *testing.T) {
	t.Parallel()
	for _, tc := range equalities() {
		a, b := encoded(t, tc.a), encoded(t, tc.b)
		for name, got := range map[string]bool{
			"decoded":           EqualValues(tc.a, tc.b),
			"decoded, swapped":  EqualValues(tc.b, tc.a),
			"raw":               a.Equal(b),
			"raw, swapped":      b.Equal(a),
			"decoded from raw":  EqualValues(a.Decode(), b.Decode()),
			"as declare's args": Table{"x": tc.a}.Equal(Table{"x": tc.b}),
		} {
			if got != tc.want {
				t.Errorf("%T %v and %T %v, %s: got %v, want %v", tc.a, tc.a, tc.b, tc.b, name, got, tc.want)
			}
		}
	}
	yes, alsoYes := RawValue{TypeBool, []byte{1}}, RawValue{TypeBool, []byte{2}}
	if !yes.Equal(alsoYes) {
		t.Error("true written as 1 and as 2 differ")
	}
}

func TestTypeNames(t *testing.T) {
	t.Parallel()
	for v, want := range map[any]string{int32(1): "signedint", "s": "longstr", nil: "void",
		int64(1): "long", true: "bool", 1.0: "double"} {
		if got := TypeNameOf(v); got != want {
			t.Errorf("%T: got %q, want %q", v, got, want)
		}
	}
	for _, tc := range fieldCases() {
		if TypeNameOf(tc.value) == "unknown" {
			t.Errorf("%s has no type name", tc.name)
		}
	}
}
