package main

import (
	"testing"
	"time"
)

func TestDelayFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day,
		"1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond, "99999d": 99999 * day,
		"2w": 14 * day, "1y2w3d4h": 365*day + 17*day + 4*time.Hour, "100y": 100 * year,
	} {
		var got delayFlag
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%s = %v, %v, want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{"", "5", "d", "0s", "0d", "-5s", "-1d", "--5s", "1.5d", "soon", "5s5",
		"1d2w", "293y", "292y52w", "99999999999d", "292y9999h"} {
		var got delayFlag
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %v, want an error", text, time.Duration(got))
		}
	}
}

func TestHuman(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 20 * time.Millisecond: "20ms", 1500 * time.Millisecond: "1.5s", 90 * time.Second: "1m 30s",
		time.Minute: "1m", 62 * time.Minute: "1h 2m", 168 * time.Hour: "7d", 7*day - time.Millisecond: "7d",
		36*time.Hour + time.Second: "1d 12h", 100 * year: "100y", 400 * day: "1y 35d", -time.Hour: "-1h",
		time.Hour - time.Millisecond: "1h",
	} {
		if got := human(d); got != want {
			t.Errorf("human(%v) = %q, want %q", d, got, want)
		}
	}
}
