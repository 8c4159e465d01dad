package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// faults goes through what is wrong: first with the settings that are known, in the order of their
// names.
func (d Definition) faults(operator bool) iter.Seq[*Fault] {
	return func(yield func(*Fault) bool) {
		report := func(key, text string) bool {
			return text == "" || yield(&Fault{Part: "definition", Key: key, Text: text})
		}
		if len(d) == 0 {
			report("", "no policy provided")
			return
		}
		var unknown []string
		for _, key := range slices.Sorted(maps.Keys(d)) {
			s, ok := settingNamed(key)
			switch {
			case !ok, operator && s.merge == nil:
				unknown = append(unknown, fmt.Sprintf("{%s,%s}", term(key), term(d[key])))
			case !s.valid(d[key]) && !report(key, term(d[key])+" "+s.fault):
				return
			}
		}
		if !report("", d.checkMirroring()) || !report("", d.checkDelayedRetry()) || len(unknown) == 0 {
			return
		}
		report("", fmt.Sprintf("[%s] are not recognised policy settings", strings.Join(unknown, ",")))
	}
}

// checkDelayedRetry returns how settings of delayed retry, each valid, contradict each other.
func (d Definition) checkDelayedRetry() string {
	mode, hasMode := d["delayed-retry-type"]
	least, hasLeast := d["delayed-retry-min"].(int64)
	most, hasMost := d["delayed-retry-max"].(int64)
	switch {
	case hasMode && mode != "disabled" && !hasLeast:
		return fmt.Sprintf("delayed-retry-min is required when delayed-retry-type is %s", mode)
	case hasLeast && hasMost && most < least:
		return fmt.Sprintf("delayed-retry-max (%d) must not be smaller than delayed-retry-min (%d)",
			most, least)
	}
	return ""
}

// lacked returns the kinds of queues that lack one of the settings.
func (d Definition) lacked() (k Kind) {
	for key := range d {
		s, _ := settingNamed(key)
		k |= s.lacked
	}
	return k
}

// Merge returns what is in force where a policy and an operator policy apply; either may be nil.
// Of what both set, the operator's is a bound: of numbers the lower one counts.
// [rmq operator policies]
func Merge(user, operator *Policy) Definition {
	switch {
	case user == nil && operator == nil:
		return nil
	case operator == nil:
		return user.Definition
	case user == nil:
		return operator.Definition
	}
	d := maps.Clone(user.Definition)
	for key, value := range operator.Definition {
		if s, ok := settingNamed(key); ok && s.merge != nil && d[key] != nil {
			value = s.merge(d[key], value)
		}
		d[key] = value
	}
	return d
}

// term writes a value as Erlang does, as texts of RabbitMQ have them.
func term(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "<<" + strconv.Quote(v) + ">>"
	case float64:
		return formatFloat(v)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = term(e)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, term(key)+" => "+term(v[key]))
		}
		return "#{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}

// formatFloat keeps the point that tells a float from an integer.
func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok {
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa + "e" + strings.TrimPrefix(exponent, "+")
	}
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
