package store

import (
	"bytes"
	"slices"
	"strings"
)

// definition is the current value of a key and where it is in the log.
type definition struct {
	value []byte
	ref   Ref
}

// defineLocked takes a put record into account.
func (l *log) defineLocked(key string, rec []byte, ref Ref) {
	l.undefineLocked(key)
	r := reader{b: rec[recordHeaderBytes:]}
	r.str()
	l.defs[key] = definition{value: bytes.Clone(r.b), ref: ref}
	if g := l.segment(ref.File); g != nil {
		g.live.Add(int64(ref.Len))
	}
}

func (l *log) undefineLocked(key string) {
	if d, ok := l.defs[key]; ok {
		if g := l.segment(d.ref.File); g != nil {
			g.live.Add(-int64(d.ref.Len))
		}
		delete(l.defs, key)
	}
}

// segment returns a segment of the log or a run, or nil.
func (l *log) segment(id uint32) *segment {
	if g := l.segs.Load().get(id); g != nil {
		return g
	}
	if r := l.run(id); r != nil {
		return r.segment
	}
	return nil
}

func (l *log) run(id uint32) *run { return (*l.runs.Load())[id] }

func sortedDefinitions(defs map[string]definition) []Definition {
	list := make([]Definition, 0, len(defs))
	for k, d := range defs {
		list = append(list, Definition{Key: k, Value: bytes.Clone(d.value)})
	}
	slices.SortFunc(list, func(a, b Definition) int { return strings.Compare(a.Key, b.Key) })
	return list
}
