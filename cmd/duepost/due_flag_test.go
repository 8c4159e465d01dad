package main

import (
	"testing"
	"time"
)

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
