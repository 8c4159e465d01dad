package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
	year = 365 * day
)

// delayFlag is a duration that also knows years of 365 days, weeks and days, in this order and
// before the rest: 5s, 1h30m, 7d, 1d12h, 100y.
type delayFlag time.Duration

// UnmarshalText parses a delay; 0 and below are refused.
func (d *delayFlag) UnmarshalText(text []byte) error {
	v, err := parseDelay(string(text))
	if err != nil {
		return err
	}
	if v <= 0 {
		return fmt.Errorf("%q must be above 0", text)
	}
	*d = delayFlag(v)
	return nil
}

var errDelayTooLong = errors.New("is too long, the longest is 290y")

func parseDelay(text string) (time.Duration, error) {
	s, negative := strings.CutPrefix(text, "-")
	var total float64 // only to notice what does not fit
	var v time.Duration
	m := regexp.MustCompile(`^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(.*)$`).FindStringSubmatch(s)
	for i, unit := range []time.Duration{year, week, day} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseUint(m[i+1], 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q %w", text, errDelayTooLong)
		}
		total += float64(n) * float64(unit)
		v += time.Duration(n) * unit
	}
	if rest := m[4]; rest != "" || total == 0 {
		r, err := time.ParseDuration(rest)
		if err != nil || r < 0 {
			return 0, fmt.Errorf("%q is not a delay such as 5s, 1h30m, 7d, 2w or 1y", text)
		}
		total += float64(r)
		v += r
	}
	if total > math.MaxInt64 {
		return 0, fmt.Errorf("%q %w", text, errDelayTooLong)
	}
	if negative {
		v = -v
	}
	return v, nil
}

// human writes a duration with its two largest units, as people say it: 7d, 1h 2m, 1.5s, 20ms.
func human(d time.Duration) string {
	if d < 0 {
		return "-" + human(-d)
	}
	if d < time.Minute {
		return d.Round(time.Millisecond).String()
	}
	units := []struct {
		name string
		size time.Duration
	}{{"y", year}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	for i := range len(units) - 1 {
		large, small := units[i], units[i+1]
		rounded := d.Round(small.size)
		if rounded < large.size {
			continue
		}
		text := fmt.Sprintf("%d%s", rounded/large.size, large.name)
		if n := rounded % large.size / small.size; n > 0 {
			text += fmt.Sprintf(" %d%s", n, small.name)
		}
		return text
	}
	return d.String()
}
