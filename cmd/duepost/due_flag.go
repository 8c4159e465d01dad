package main

import (
	"fmt"
	"time"
)

// dueFlag is an instant, absolute or the next time of day.
type dueFlag time.Time

// UnmarshalText parses an instant.
func (d *dueFlag) UnmarshalText(text []byte) error {
	t, err := parseDue(string(text), time.Now())
	*d = dueFlag(t)
	return err
}

// parseDue reads RFC 3339, a local date and time, or a local time of day, which is the next one
// after now.
func parseDue(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		c, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		y, m, day := now.Date()
		t := time.Date(y, m, day, c.Hour(), c.Minute(), c.Second(), 0, now.Location())
		if !t.After(now) {
			t = time.Date(y, m, day+1, c.Hour(), c.Minute(), c.Second(), 0, now.Location())
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2027-01-31T09:00:00+01:00, "+
		"'2027-01-31 09:00' or 09:00", s)
}
