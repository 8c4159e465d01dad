package headers

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
)

// accepted is when the messages of these tests are accepted.
const accepted = 1_700_000_000_000

// raw encodes a header table.
func raw(t testing.TB, table amqp.Table) amqp.RawTable {
	t.Helper()
	b, err := amqp.AppendTable(nil, table)
	if err != nil {
		t.Fatal(err)
	}
	return b[4:]
}

func TestDelayFromEveryType(t *testing.T) {
	t.Parallel()
	const untouched = 0 // not delayed
	for _, tc := range []struct {
		name  string
		value any
		want  int64 // milliseconds
	}{
		{"int8", int8(100), 100},
		{"uint8", uint8(200), 200},
		{"int16", int16(30000), 30000},
		{"uint16", uint16(60000), 60000},
		{"int32", int32(math.MaxInt32), math.MaxInt32},
		{"uint32", uint32(math.MaxUint32), math.MaxUint32},
		{"int64", int64(5000), 5000},
		{"int64 by its other letter",
			amqp.RawValue{Type: amqp.TypeInt64Alt, Data: []byte{0, 0, 0, 0, 0, 0, 0, 9}}, 9},
		{"beyond 32 bits", int64(math.MaxUint32) + 1, math.MaxUint32 + 1},
		{"100 years", MaxDelay, MaxDelay},
		{"float32", float32(1.99), 1},
		{"float64", 1500.999, 1500},
		{"float of 100 years", float64(MaxDelay) + 0.9, MaxDelay},
		{"string", "5000", 5000},
		{"string with plus", "+5000", 5000},
		{"string with zeros", "0000000000000000000000005", 5},
		{"one", int8(1), 1},
		{"zero", int32(0), untouched},
		{"fraction", 0.99, untouched},
		{"negative fraction", -0.99, untouched},
		{"string zero", "0", untouched},
		{"negative", int32(-5000), untouched},
		{"negative float", -5000.5, untouched},
		{"negative string", "-5000", untouched},
		{"most negative", int64(math.MinInt64), untouched},
		{"very negative float", -1e300, untouched},
		{"very negative string", "-99999999999999999999999", untouched},
	} {
		for _, header := range []string{XDelay, DeliveryDelay} {
			h := raw(t, amqp.Table{"a": "b", header: tc.value, "y": nil})
			d, err := ParseDelay(h, accepted)
			if err != nil {
				t.Errorf("%s, %s: %v", header, tc.name, err)
				continue
			}
			if d.Millis != tc.want || d.IsDelayed() != (tc.want != 0) {
				t.Errorf("%s, %s: got %d ms, delayed %v; want %d ms",
					header, tc.name, d.Millis, d.IsDelayed(), tc.want)
			}
			if tc.want != 0 && d.Due != accepted+tc.want {
				t.Errorf("%s, %s: due %d, want %d", header, tc.name, d.Due, accepted+tc.want)
			}
		}
	}
}

func TestRefusedDelays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		value any
		want  string
	}{
		{"word", "soon", `type longstr and no integer in it: "soon"`},
		{"empty string", "", `no integer in it: ""`},
		{"sign alone", "-", "no integer in it"},
		{"two signs", "+-1", "no integer in it"},
		{"string with a fraction", "1.5", "no integer in it"},
		{"string with a space", " 5", "no integer in it"},
		{"string with a unit", "5s", "no integer in it"},
		{"string in hex", "0x10", "no integer in it"},
		{"long string", strings.Repeat("x", 1000), "no integer in it"},
		{"NaN", math.NaN(), "type double and value NaN"},
		{"infinity", math.Inf(1), "type double and value +Inf"},
		{"negative infinity", float32(math.Inf(-1)), "type float and value -Inf"},
		{"decimal", amqp.Decimal{Scale: 0, Value: 5}, "type decimal"},
		{"bool", true, "type bool"},
		{"time", time.Unix(5, 0), "type timestamp"},
		{"void", nil, "type void"},
		{"bytes", []byte("5"), "type binary"},
		{"array", []any{int32(5)}, "type array"},
		{"table", amqp.Table{"x": int32(5)}, "type table"},
		{
			"over 100 years", MaxDelay + 1,
			"asks for a delay of 3153600000001 ms, allowed are at most 3153600000000",
		},
		{"float over 100 years", float64(MaxDelay) + 1, "allowed are at most"},
		{"float beyond 64 bits", 1e300, "allowed are at most"},
		{"string beyond 64 bits", "99999999999999999999999", "allowed are at most"},
		{"most", int64(math.MaxInt64), "allowed are at most"},
	} {
		for _, header := range []string{XDelay, DeliveryDelay, DeliveryTime} {
			// That a header with precedence is sound does not help.
			h := raw(t, amqp.Table{
				"x-opt-delivery-delay": int8(1), "x-opt-delivery-time": int64(accepted), header: tc.value,
			})
			_, err := ParseDelay(h, accepted)
			var e *amqp.Error
			if header == DeliveryTime && strings.Contains(tc.want, "at most") {
				continue // an instant; see TestDeliveryTime
			}
			if !errors.As(err, &e) || e.Code != amqp.PreconditionFailed {
				t.Errorf("%s, %s: got %v, want an error with code 406", header, tc.name, err)
				continue
			}
			for _, want := range []string{"'" + header + "'", tc.want, "allowed are"} {
				if !strings.Contains(e.Text, want) {
					t.Errorf("%s, %s: got %q, want %q in it", header, tc.name, e.Text, want)
				}
			}
			if len(e.ReplyText()) >= amqp.MaxShortStr {
				t.Errorf("%s, %s: the text is cut: %q", header, tc.name, e.ReplyText())
			}
		}
	}
}

func TestDeliveryTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		at      any
		want    int64
		refused bool
	}{
		{"in a second", int64(accepted + 1000), 1000, false},
		{"in a millisecond", int64(accepted + 1), 1, false},
		{"now", int64(accepted), 0, false},
		{"past", int64(accepted - 1), 0, false},
		{"1970", int32(1), 0, false},
		{"zero", int32(0), 0, false},
		{"before 1970", int64(-1), 0, false},
		{"most past", int64(math.MinInt64), 0, false},
		{"string", "1700000005000", 5000, false},
		{"float", float64(accepted) + 2.5, 2, false},
		{"in 100 years", int64(accepted + MaxDelay), MaxDelay, false},
		{"in over 100 years", int64(accepted + MaxDelay + 1), 0, true},
		{"most", int64(math.MaxInt64), 0, true},
	} {
		d, err := ParseDelay(raw(t, amqp.Table{DeliveryTime: tc.at}), accepted)
		if (err != nil) != tc.refused {
			t.Errorf("%s: got %v", tc.name, err)
		}
		const want = "'x-opt-delivery-time' asks for a delay of"
		if tc.refused && err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", tc.name, err)
		}
		if d.Millis != tc.want {
			t.Errorf("%s: got %d ms, want %d", tc.name, d.Millis, tc.want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	const past, soon = int64(1), int64(accepted + 1)
	for _, tc := range []struct {
		name  string
		table amqp.Table
		want  int64
	}{
		{"none", amqp.Table{"X-Delay": int32(5), "x-dela": int32(5), "x-delays": int32(5)}, 0},
		{"time over both", amqp.Table{DeliveryTime: soon, DeliveryDelay: int32(2), XDelay: int32(3)}, 1},
		{"delay over x-delay", amqp.Table{DeliveryDelay: int32(2), XDelay: int32(3)}, 2},
		{"past over both", amqp.Table{DeliveryTime: past, DeliveryDelay: int32(2), XDelay: int8(3)}, 0},
		{"zero delay over x-delay", amqp.Table{DeliveryDelay: int32(0), XDelay: int32(3)}, 0},
		{"served x-delay over a time", amqp.Table{DeliveryTime: soon, XDelay: int32(-3)}, 0},
		{"served delay over a time", amqp.Table{DeliveryTime: soon, DeliveryDelay: int32(-2)}, 0},
		{"served x-delay over a delay", amqp.Table{DeliveryDelay: int32(2), XDelay: int32(-3)}, 0},
		{"served delay over x-delay", amqp.Table{DeliveryDelay: int32(-2), XDelay: int32(3)}, 0},
		{"served, with a far time", amqp.Table{DeliveryTime: int64(math.MaxInt64), XDelay: int32(-3)}, 0},
	} {
		d, err := ParseDelay(raw(t, tc.table), accepted)
		if err != nil || d.Millis != tc.want {
			t.Errorf("%s: got %d ms and %v, want %d ms", tc.name, d.Millis, err, tc.want)
		}
	}
}

func TestReleased(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		sent, seen amqp.Table
	}{
		{
			"x-delay", amqp.Table{XDelay: int32(5000), "z": "z"},
			amqp.Table{XDelay: int64(-5000), "z": "z"},
		},
		{"x-delay as a string", amqp.Table{XDelay: "5000"}, amqp.Table{XDelay: int64(-5000)}},
		{"x-delay as a float", amqp.Table{XDelay: 1.9}, amqp.Table{XDelay: int64(-1)}},
		{"x-delay as an octet", amqp.Table{XDelay: uint8(200)}, amqp.Table{XDelay: int64(-200)}},
		{"delay", amqp.Table{DeliveryDelay: int32(7)}, amqp.Table{DeliveryDelay: int64(-7)}},
		{
			"both", amqp.Table{DeliveryDelay: int32(7), XDelay: int16(9)},
			amqp.Table{DeliveryDelay: int64(-7), XDelay: int64(-9)},
		},
		{
			"delay beside zero", amqp.Table{DeliveryDelay: int32(7), XDelay: int16(0)},
			amqp.Table{DeliveryDelay: int64(-7), XDelay: int16(0)},
		},
		{
			"time", amqp.Table{DeliveryTime: int64(accepted + 60), "a": nil},
			amqp.Table{DeliveryTime: int64(accepted + 60), "a": nil, XDelay: int64(-60)},
		},
		{
			"time as a string, beside others",
			amqp.Table{DeliveryTime: "1700000000060", DeliveryDelay: int8(7), XDelay: int8(9)},
			amqp.Table{DeliveryTime: "1700000000060", DeliveryDelay: int64(-7), XDelay: int64(-60)},
		},
		{
			"time beside zeros",
			amqp.Table{DeliveryTime: int64(accepted + 60), DeliveryDelay: int8(0), XDelay: int8(0)},
			amqp.Table{DeliveryTime: int64(accepted + 60), DeliveryDelay: int8(0), XDelay: int64(-60)},
		},
	} {
		h := raw(t, tc.sent)
		d, err := ParseDelay(h, accepted)
		if err != nil || !d.IsDelayed() {
			t.Errorf("%s: not delayed, %v", tc.name, err)
			continue
		}
		released := amqp.RawTable(AppendReleased(nil, h, d))
		seen, err := released.Decode()
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.seen, seen); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if again, err := ParseDelay(released, accepted); err != nil || again.IsDelayed() {
			t.Errorf("%s: delayed a second time (%v)", tc.name, err)
		}
	}
}

func TestReleasedLeavesTheRestByteForByte(t *testing.T) {
	t.Parallel()
	// Unsorted, with a name twice, true written as 2 and the letter L.
	const before = "\x01zt\x02\x01aL\x00\x00\x00\x00\x00\x00\x00\x01"
	const after = "\x01aV\x01bF\x00\x00\x00\x03\x01cV"
	h := amqp.RawTable(before + "\x07x-delayb\x05" + after)
	d, err := ParseDelay(h, accepted)
	if err != nil {
		t.Fatal(err)
	}
	want := "prefix" + before + "\x07x-delayl\xff\xff\xff\xff\xff\xff\xff\xfb" + after
	if got := string(AppendReleased([]byte("prefix"), h, d)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := string(AppendReleased(nil, h, Delay{})); got != string(h) {
		t.Errorf("not delayed: got %q, want %q", got, h)
	}
}

func TestNoReleasedDelayStaysPositive(t *testing.T) {
	t.Parallel()
	h := amqp.RawTable("\x07x-delayb\x05\x07x-delayb\x06")
	d, err := ParseDelay(h, accepted)
	if err != nil || d.Millis != 5 {
		t.Fatalf("got %d ms and %v, want the first", d.Millis, err)
	}
	for _, v := range amqp.RawTable(AppendReleased(nil, h, d)).All() {
		if n, ok := v.Int(); !ok || n >= 0 {
			t.Errorf("a client that takes the last of two sees %d", n)
		}
	}
}
