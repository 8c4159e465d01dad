package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table is a list of objects and which of their keys are shown, in that order. A dot in a key leads
// into an object.
type table struct {
	columns []string
	rows    []map[string]any
}

// write prints as the flag --format says.
func (t *table) write(w io.Writer, format string) error {
	if format == "json" {
		return t.writeJSON(w)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.columns, "\t"))
	for _, row := range t.rows {
		cells := make([]string, len(t.columns))
		for i, c := range t.columns {
			cells[i] = cell(valueAt(row, c))
		}
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

func (t *table) writeJSON(w io.Writer) error {
	cut := make([]map[string]any, len(t.rows))
	for i, row := range t.rows {
		cut[i] = make(map[string]any)
		for _, c := range t.columns {
			cut[i][c] = valueAt(row, c)
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(cut); err != nil {
		return fmt.Errorf("print list: %w", err)
	}
	return nil
}

func valueAt(row map[string]any, path string) any {
	key, rest, more := strings.Cut(path, ".")
	if inner, ok := row[key].(map[string]any); ok && more {
		return valueAt(inner, rest)
	}
	return row[key]
}

// cell is a value in one line of text that a terminal takes no harm from.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return strconv.Quote(v)
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		texts := make([]string, len(v))
		for i, e := range v {
			texts[i] = cell(e)
		}
		return strings.Join(texts, ",")
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
