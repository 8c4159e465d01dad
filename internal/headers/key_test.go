package headers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
)

func TestKeyAndCancel(t *testing.T) {
	t.Parallel()
	type want struct {
		Key           string
		Cancel, Waits bool
		Millis        int64
	}
	for name, tc := range map[string]struct {
		headers amqp.Table
		want    want
	}{
		"key and delay":              {amqp.Table{DelayKey: "k", XDelay: int32(5)}, want{"k", false, true, 5}},
		"key alone":                  {amqp.Table{DelayKey: "k"}, want{"k", false, true, 0}},
		"key and no delay":           {amqp.Table{DelayKey: "k", XDelay: int32(0)}, want{"k", false, true, 0}},
		"key and an instant past":    {amqp.Table{DelayKey: "k", DeliveryTime: int64(7)}, want{"k", false, true, 0}},
		"longest key":                {amqp.Table{DelayKey: strings.Repeat("k", MaxKey)}, want{strings.Repeat("k", MaxKey), false, true, 0}},
		"cancel":                     {amqp.Table{DelayKey: "k", DelayCancel: true}, want{"k", true, true, 0}},
		"cancel with a delay":        {amqp.Table{DelayKey: "k", DelayCancel: true, XDelay: int32(5)}, want{"k", true, true, 0}},
		"no cancel":                  {amqp.Table{DelayKey: "k", DelayCancel: false, XDelay: int32(5)}, want{"k", false, true, 5}},
		"no cancel, no key":          {amqp.Table{DelayCancel: false, XDelay: int32(5)}, want{"", false, true, 5}},
		"no cancel, no key, no more": {amqp.Table{DelayCancel: false}, want{}},
		"served":                     {amqp.Table{DelayKey: "k", DelayCancel: true, XDelay: int32(-5)}, want{}},
	} {
		h := raw(t, tc.headers)
		d, err := ParseDelay(h, accepted)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := want{string(d.Key), d.Cancel, d.Waits(), d.Millis}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if d := d.WithoutKey(); d.Key != nil || d.Cancel || d.Millis != tc.want.Millis {
			t.Errorf("%s: without key %+v", name, d)
		}
		if tc.want.Key != "" && string(KeyOf(AppendReleased(nil, h, d))) != tc.want.Key {
			t.Errorf("%s: the released message has another key", name)
		}
	}
}

func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		headers amqp.Table
		want    string
	}{
		"number":             {amqp.Table{DelayKey: int64(5)}, "'x-delay-key' has type long; allowed is longstr"},
		"bytes":              {amqp.Table{DelayKey: []byte("k")}, "'x-delay-key' has type binary"},
		"void":               {amqp.Table{DelayKey: nil}, "'x-delay-key' has type void"},
		"empty":              {amqp.Table{DelayKey: ""}, "'x-delay-key' has 0 bytes, allowed are 1 to 255"},
		"too long":           {amqp.Table{DelayKey: strings.Repeat("k", MaxKey+1)}, "has 256 bytes"},
		"cancel as text":     {amqp.Table{DelayKey: "k", DelayCancel: "true"}, "'x-delay-cancel' has type longstr; allowed is bool"},
		"cancel as number":   {amqp.Table{DelayKey: "k", DelayCancel: int32(1)}, "'x-delay-cancel' has type"},
		"cancel of what":     {amqp.Table{DelayCancel: true}, "'x-delay-cancel' is true and there is no header 'x-delay-key'"},
		"served, and no key": {amqp.Table{DelayCancel: true, XDelay: int32(-5)}, "there is no header 'x-delay-key'"},
	} {
		_, err := ParseDelay(raw(t, tc.headers), accepted)
		var e *amqp.Error
		if !errors.As(err, &e) || e.Code != amqp.PreconditionFailed || !strings.Contains(e.Text, tc.want) {
			t.Errorf("%s: got %v, want 406 with %q", name, err, tc.want)
		}
	}
}
