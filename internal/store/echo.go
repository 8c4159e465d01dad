package store

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// copiedRange is the range of positions of one queue that were ever copied, and
// where the last copy is.
type copiedRange struct {
	lo, hi uint64
	lsn    LSN
}

// noteCopy remembers that there is a copy of a message for t.
func (c *cleaner) noteCopy(t Target, lsn LSN) {
	r := c.copied[t.Queue]
	if r == nil {
		r = &copiedRange{lo: t.Pos, hi: t.Pos}
		c.copied[t.Queue] = r
	}
	r.lo, r.hi, r.lsn = min(r.lo, t.Pos), max(r.hi, t.Pos), max(r.lsn, lsn)
}

// echo notes what of a record that ended messages must be logged again, because
// there may be copies of them behind it. One echo too many does no harm.
func (c *cleaner) echo(rec []byte) {
	body := rec[recordHeaderBytes:]
	if kind(rec[12]) == kindSettle {
		parseSettle(body, c.echoStretch)
		return
	}
	r := reader{b: body}
	c.echoStretch(r.u32(), 0, ^uint64(0))
}

func (c *cleaner) echoStretch(queue uint32, first, n uint64) {
	r := c.copied[queue]
	if r == nil {
		return
	}
	if r.lsn < c.first {
		delete(c.copied, queue) // the segments with the copies are gone
		return
	}
	if lo, end := max(first, r.lo), min(first+n, r.hi+1); lo < end {
		c.echoes[queue] = append(c.echoes[queue], stretch{lo, end - lo})
	}
}

// logEchoes logs the noted settles, merged, so that they do not grow from round
// to round.
func (c *cleaner) logEchoes() error {
	const piece = 256
	for queue, list := range c.echoes {
		for list = joinStretches(list); len(list) > 0; list = list[min(piece, len(list)):] {
			body := binary.AppendUvarint(make([]byte, recordHeaderBytes), uint64(queue))
			var end uint64
			for _, r := range list[:min(piece, len(list))] {
				body, end = appendStretch(body, end, r)
			}
			putHeader(body, kindSettle, flagCopy, 0)
			if _, ok := c.append(len(body), func(buf []byte) { copy(buf, body) }); !ok {
				return c.err
			}
		}
	}
	return nil
}

func joinStretches(list []stretch) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
	joined := list[:0]
	for _, r := range list {
		if k := len(joined); k > 0 && r.first <= joined[k-1].first+joined[k-1].n {
			l := &joined[k-1]
			l.n = max(l.n, r.first+r.n-l.first)
			continue
		}
		joined = append(joined, r)
	}
	return joined
}
