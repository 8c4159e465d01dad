package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// blockCount says how many records of an exchange a block of a run has. The list of
// an exchange has all blocks that have any, in order. In the file an item is the
// number of blocks between it and the one before, and the count, as varints; so
// nothing of an exchange is found by reading what is others'.
type blockCount struct{ block, count uint32 }

// noteBlock counts one more record in a block, the last of the list or a later one.
func noteBlock(list []blockCount, block uint32) []blockCount {
	if n := len(list); n > 0 && list[n-1].block == block {
		list[n-1].count++
		return list
	}
	return append(list, blockCount{block, 1})
}

// appendLists appends the lists of all exchanges, and notes where they are.
func (r *run) appendLists(b []byte, l *log) []byte {
	first := len(b)
	for i := range r.exchanges {
		start := len(b)
		next := uint32(0)
		for _, c := range r.lists[i] {
			b = binary.AppendUvarint(b, uint64(c.block-next))
			b = binary.AppendUvarint(b, uint64(c.count))
			next = c.block + 1
		}
		e := &r.exchanges[i]
		e.at, e.length = uint32(start-first), uint32(len(b)-start)
		e.crc = crc32.Checksum(b[start:], l.table)
	}
	return b
}

// exchangeAt returns the place of an exchange in r.exchanges, or -1.
func (r *run) exchangeAt(id uint32) int {
	for i := range r.exchanges {
		if r.exchanges[i].id == id {
			return i
		}
	}
	return -1
}

// blocksOf returns the list of an exchange, which has the given place. It may read
// it from the file; if that is damaged, it reads all of the run.
func (r *run) blocksOf(place int, l *log) ([]blockCount, error) {
	if r.lists != nil {
		return r.lists[place], nil
	}
	e := &r.exchanges[place]
	b := make([]byte, e.length)
	if err := readFull(r.file, b, r.listsAt+int64(e.at)); err != nil {
		return nil, fmt.Errorf("read list of blocks of %s: %w", r.name, err)
	}
	if crc32.Checksum(b, l.table) != e.crc {
		return r.searchBlocks(e.id, l)
	}
	var list []blockCount
	next := uint32(0)
	for p := (reader{b: b}); len(p.b) > 0; {
		c := blockCount{next + uint32(p.uvarint()), uint32(p.uvarint())}
		if p.bad || c.block >= uint32(len(r.blocks)) {
			return r.searchBlocks(e.id, l)
		}
		list = append(list, c)
		next = c.block + 1
	}
	return list, nil
}

// blocksOfAll returns the blocks that have records of any of some exchanges, and how
// many they have.
func (r *run) blocksOfAll(exchanges []uint32, l *log) (all []blockCount, err error) {
	for _, id := range exchanges {
		place := r.exchangeAt(id)
		if place < 0 {
			continue
		}
		list, err := r.blocksOf(place, l)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = list
			continue
		}
		all = slices.Concat(all, list)
		slices.SortFunc(all, func(a, b blockCount) int { return cmp.Compare(a.block, b.block) })
		n := 0
		for _, c := range all {
			if n > 0 && all[n-1].block == c.block {
				all[n-1].count += c.count
				continue
			}
			all[n] = c
			n++
		}
		all = all[:n]
	}
	return all, nil
}

func (r *run) searchBlocks(exchange uint32, l *log) (list []blockCount, err error) {
	var m image
	for n := range r.blocks {
		if err := r.read(&m, n, l, func(int64, int64) {}); err != nil {
			return nil, err
		}
		for i := range m.records {
			if m.records[i].exchange == exchange {
				list = noteBlock(list, uint32(n))
			}
		}
	}
	return list, nil
}
