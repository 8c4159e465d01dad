package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rows is a list that a client may have sorted, cut to columns, filtered by name and cut to pages,
// by the parameters of the query. [rmq management pagination]
type rows []object

const (
	defaultPageSize = 100
	maxPageSize     = 500
)

// shaped does what the query asks for.
func (r rows) shaped(query url.Values) (any, error) {
	p, err := parsePage(query)
	if err != nil {
		return nil, err
	}
	total := len(r)
	if p != nil {
		if r, err = r.named(query.Get("name"), query.Get("use_regex") == "true"); err != nil {
			return nil, err
		}
	}
	r.sort(query.Get("sort"), query.Get("sort_reverse") == "true")
	if p == nil {
		return list(r.columns(query.Get("columns"))), nil
	}
	return p.cut(r, total, query.Get("columns"))
}

// page is which part of a list is wanted.
type page struct{ number, size int }

// parsePage returns nil if the whole list is wanted.
func parsePage(query url.Values) (*page, error) {
	if !query.Has("page") {
		return nil, nil
	}
	p := page{size: defaultPageSize}
	var err error
	if p.number, err = strconv.Atoi(query.Get("page")); err == nil && query.Has("page_size") {
		p.size, err = strconv.Atoi(query.Get("page_size"))
	}
	switch {
	case err != nil:
		return nil, badRequest("Pagination parameters are invalid")
	case p.number < 1 || p.size < 1 || p.size > maxPageSize:
		return nil, &apiError{http.StatusBadRequest, "invalid_pagination_parameters", fmt.Sprintf(
			"Invalid pagination parameters: page number %d, page size %d", p.number, p.size)}
	}
	return &p, nil
}

func (p *page) cut(r rows, total int, columns string) (any, error) {
	pages := (len(r) + p.size - 1) / p.size
	if p.number > max(pages, 1) {
		return nil, &apiError{http.StatusBadRequest, "page_out_of_range", fmt.Sprintf(
			"Page out of range, page: %d page size: %d, len: %d", p.number, p.size, len(r))}
	}
	items := r[(p.number-1)*p.size : min(p.number*p.size, len(r))].columns(columns)
	return object{
		"page": p.number, "page_size": p.size, "page_count": pages, "items": list(items),
		"item_count": len(items), "filtered_count": len(r), "total_count": total,
	}, nil
}

// named keeps what has the text, or matches the regular expression, in its name, whatever the case.
func (r rows) named(text string, isPattern bool) (rows, error) {
	if text == "" {
		return r, nil
	}
	matches := func(name string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(text)) }
	if isPattern {
		p, err := regexp.Compile("(?i)" + text)
		if err != nil {
			return nil, badRequest("name is no regular expression: %v", err)
		}
		matches = p.MatchString
	}
	var kept rows
	for _, row := range r {
		if name, ok := row["name"].(string); ok && matches(name) {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

func (r rows) sort(by string, reversed bool) {
	if by == "" {
		return
	}
	slices.SortStableFunc(r, func(a, b object) int {
		order := compareValues(a.at(by), b.at(by))
		if reversed {
			return -order
		}
		return order
	})
}

// compareValues orders numbers before texts, and those by what they are.
func compareValues(a, b any) int {
	x, isX := number(a)
	y, isY := number(b)
	if isX && isY {
		return cmp.Compare(x, y)
	}
	if isX != isY {
		return map[bool]int{true: -1, false: 1}[isX]
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// at returns what a path of keys with dots between leads to, or nil.
func (o object) at(path string) any {
	key, rest, more := strings.Cut(path, ".")
	v := o[key]
	if inner, ok := v.(object); ok && more {
		return inner.at(rest)
	}
	return v
}

// columns keeps only some keys: names with commas between, dots for what is further in.
func (r rows) columns(names string) rows {
	if names == "" {
		return r
	}
	cut := make(rows, len(r))
	for i, row := range r {
		cut[i] = make(object)
		for path := range strings.SplitSeq(names, ",") {
			cut[i].copy(row, path)
		}
	}
	return cut
}

// copy takes over what a path leads to, if it leads to something.
func (o object) copy(from object, path string) {
	key, rest, more := strings.Cut(path, ".")
	v, ok := from[key]
	if !ok {
		return
	}
	inner, isObject := v.(object)
	if !more || !isObject {
		o[key] = v
		return
	}
	into, ok := o[key].(object)
	if !ok {
		into = make(object)
		o[key] = into
	}
	into.copy(inner, rest)
}
