package main

import (
	"testing"
	"time"
)

func TestDelayFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond, "20000d": 20000 * 24 * time.Hour,
	} {
		var got delayFlag
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%s = %v, %v, want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{"", "5", "d", "0s", "0d", "-5s", "-1d", "1.5d", "soon", "5s5", "99999d"} {
		var got delayFlag
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %v, want an error", text, time.Duration(got))
		}
	}
}

func TestParseDue(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2027, 1, 31, 12, 0, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"2027-02-01T08:00:00+01:00": time.Date(2027, 2, 1, 7, 0, 0, 0, time.UTC),
		"2027-02-01T07:00:00.250Z":  time.Date(2027, 2, 1, 7, 0, 0, 250e6, time.UTC),
		"2027-02-01 09:00":          time.Date(2027, 2, 1, 9, 0, 0, 0, zone),
		"2027-02-01 09:00:30":       time.Date(2027, 2, 1, 9, 0, 30, 0, zone),
		"12:01":                     time.Date(2027, 1, 31, 12, 1, 0, 0, zone),
		"12:00":                     time.Date(2027, 2, 1, 12, 0, 0, 0, zone), // now is not after now
		"09:00:05":                  time.Date(2027, 2, 1, 9, 0, 5, 0, zone),
	} {
		if got, err := parseDue(text, now); err != nil || !got.Equal(want) {
			t.Errorf("parseDue(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "25:00", "2027-13-01 09:00", "9"} {
		if got, err := parseDue(text, now); err == nil {
			t.Errorf("parseDue(%q) = %v, want an error", text, got)
		}
	}
}
