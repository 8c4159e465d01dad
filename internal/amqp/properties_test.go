package amqp

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allProperties has every property; the values tell which is which.
func allProperties() Properties {
	return Properties{
		Flags:           ^flagsUnused,
		ContentType:     []byte("content-type"),
		ContentEncoding: []byte("content-encoding"),
		Headers:         RawTable("\x01kt\x01"),
		DeliveryMode:    Persistent,
		Priority:        9,
		CorrelationID:   []byte("correlation-id"),
		ReplyTo:         []byte("reply-to"),
		Expiration:      []byte("60000"),
		MessageID:       []byte("message-id"),
		Timestamp:       1700000000,
		Type:            []byte("type"),
		UserID:          []byte("user-id"),
		AppID:           []byte("app-id"),
		ClusterID:       []byte("cluster-id"),
	}
}

// only returns p without the values of absent properties.
func (p Properties) only(flags uint16) Properties {
	q := Properties{Flags: flags}
	for flag, keep := range map[uint16]func(){
		FlagContentType:     func() { q.ContentType = p.ContentType },
		FlagContentEncoding: func() { q.ContentEncoding = p.ContentEncoding },
		FlagHeaders:         func() { q.Headers = p.Headers },
		FlagDeliveryMode:    func() { q.DeliveryMode = p.DeliveryMode },
		FlagPriority:        func() { q.Priority = p.Priority },
		FlagCorrelationID:   func() { q.CorrelationID = p.CorrelationID },
		FlagReplyTo:         func() { q.ReplyTo = p.ReplyTo },
		FlagExpiration:      func() { q.Expiration = p.Expiration },
		FlagMessageID:       func() { q.MessageID = p.MessageID },
		FlagTimestamp:       func() { q.Timestamp = p.Timestamp },
		FlagType:            func() { q.Type = p.Type },
		FlagUserID:          func() { q.UserID = p.UserID },
		FlagAppID:           func() { q.AppID = p.AppID },
		FlagClusterID:       func() { q.ClusterID = p.ClusterID },
	} {
		if flags&flag != 0 {
			keep()
		}
	}
	return q
}

func TestPropertiesBytes(t *testing.T) {
	t.Parallel()
	p := allProperties()
	want := "\xff\xfc" + "\x0ccontent-type" + "\x10content-encoding" + "\x00\x00\x00\x04\x01kt\x01" +
		"\x02" + "\x09" + "\x0ecorrelation-id" + "\x08reply-to" + "\x0560000" + "\x0amessage-id" +
		"\x00\x00\x00\x00\x65\x53\xf1\x00" + "\x04type" + "\x07user-id" + "\x06app-id" + "\x0acluster-id"
	if d := cmp.Diff(want, string(p.Append(nil))); d != "" {
		t.Errorf("encoded (-want +got):\n%s", d)
	}
}

func TestPropertiesOfEveryCombination(t *testing.T) {
	t.Parallel()
	full := allProperties()
	var got Properties // reused, so that what stays from before would show
	for flags := uint32(0); flags < 1<<16; flags += 4 {
		p := full
		p.Flags = uint16(flags)
		raw := p.Append(nil)
		if err := got.Decode(raw); err != nil {
			t.Fatalf("flags %04x: %v", flags, err)
		}
		again := got.Append(nil)
		if string(again) != string(raw) {
			t.Fatalf("flags %04x: encoding what was decoded gives\n%q, want\n%q", flags, again, raw)
		}
		if flags%(4*257) == 0 {
			if d := cmp.Diff(full.only(p.Flags), got); d != "" {
				t.Fatalf("flags %04x (-want +got):\n%s", flags, d)
			}
		}
	}
}

func TestPropertiesCutOffAnywhere(t *testing.T) {
	t.Parallel()
	full := allProperties()
	raw := full.Append(nil)
	var p Properties
	for n := range raw {
		err := p.Decode(raw[:n])
		var e *Error
		if !errors.As(err, &e) || e.Code != SyntaxError {
			t.Errorf("first %d of %d octets: got %v, want an error with code 502", n, len(raw), err)
		}
	}
}

func TestMalformedProperties(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, raw, want string }{
		{"more flags announced", "\x00\x01\x00\x00", "flags 0x0001 name a property"},
		{"a fifteenth property", "\x00\x02\x01x", "flags 0x0002 name a property"},
		{"octets left", "\x10\x00\x02\x00", "1 octets follow the last property"},
		{"octets left without any", "\x00\x00\x00", "1 octets follow"},
		{"bad headers", "\x20\x00\x00\x00\x00\x02\x01k", "field 'k': value is missing"},
		{"huge headers", "\x20\x00\xff\xff\xff\xff\x01k", "headers is cut off"},
		{"cut off", "\x01\x00\x051234", "expiration is cut off"},
	} {
		var p Properties
		err := p.Decode([]byte(tc.raw))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q in it", tc.name, err, tc.want)
		}
	}
}

func TestSetAndClear(t *testing.T) {
	t.Parallel()
	var p Properties
	if p.IsPersistent() || p.Has(FlagHeaders) {
		t.Error("empty properties have something")
	}
	p.DeliveryMode = Persistent
	if p.IsPersistent() {
		t.Error("persistent without the flag")
	}
	p.Set(FlagDeliveryMode)
	if !p.IsPersistent() {
		t.Error("not persistent with the flag")
	}
	p.SetHeaders(RawTable{})
	if !p.Has(FlagHeaders | FlagDeliveryMode) {
		t.Errorf("flags are %04x", p.Flags)
	}
	p.SetHeaders(nil)
	p.Clear(FlagDeliveryMode)
	if p.Flags != 0 {
		t.Errorf("flags are %04x, want 0", p.Flags)
	}
	p = Properties{Flags: FlagUserID, UserID: []byte(strings.Repeat("é", 128))}
	raw := p.Append(nil)
	if n := raw[2]; n != 254 || len(raw) != 2+1+254 {
		t.Errorf("256 octets became %d, want the 254 that end with a whole character", n)
	}
	if flags := binary.BigEndian.Uint16(raw); flags != FlagUserID {
		t.Errorf("flags are %04x", flags)
	}
}
