package store

import (
	"fmt"
	"path/filepath"
)

const scratchPrefix = "scratch-"

func (m *memory) start() { m.roles.Go(m.runSpiller) }

func (m *memory) stop() {
	m.mu.Lock()
	m.closed = true
	m.space.Broadcast()
	m.mu.Unlock()
	close(m.quit)
	m.roles.Wait()
}

// release closes and removes the scratch files.
func (m *memory) release() {
	m.mu.Lock()
	for _, g := range m.table.Load().list {
		if g != nil {
			m.discardLocked(g.view.Load())
		}
	}
	m.table.Store(&memoryTable{})
	m.mu.Unlock()
	m.removeGone()
}

// runSpiller writes segments anew: the oldest in memory while there are more
// than the budget, and any of which little is left.
func (m *memory) runSpiller() {
	for {
		select {
		case <-m.want:
		case <-m.quit:
			return
		}
		m.removeGone()
		for {
			g, toFile := m.choose()
			if g == nil {
				break
			}
			if err := m.rewrite(g, toFile); err != nil {
				m.o.Logger.Warn("cannot write scratch file", "err", err)
				break
			}
		}
	}
}

// choose picks a segment to write anew and marks it busy.
func (m *memory) choose() (g *memorySegment, toFile bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false
	}
	for _, g := range m.table.Load().list {
		if g == nil || !g.sealed {
			continue
		}
		v := g.view.Load()
		switch {
		case int64(g.live) < v.size/4:
			g.busy = true
			return g, v.file != nil
		case v.file == nil && m.resident > m.o.TransientBytes:
			g.busy = true
			return g, true
		}
	}
	return nil, false
}

// rewrite copies what is still held into a new buffer or file:
//
//  1. list the held records;
//  2. copy them, without the lock;
//  3. take over the hold counts as they are now, and swap.
func (m *memory) rewrite(g *memorySegment, toFile bool) error {
	old := g.view.Load()
	m.mu.Lock()
	places := old.held()
	m.mu.Unlock()

	v, err := m.copyTo(g, old, places, toFile)

	m.mu.Lock()
	defer m.mu.Unlock()
	g.busy = false
	m.noSpace = err != nil
	m.space.Broadcast()
	if err != nil {
		return err
	}
	for i := range v.places {
		v.places[i].holds = old.holds(v.places[i].off)
	}
	if toFile {
		m.scratch += v.size
	} else {
		m.resident += v.size
	}
	g.view.Store(v)
	m.discardLocked(old)
	m.releaseIfEmptyLocked(g)
	return nil
}

// held lists the records with holds, at their new places. Under mu.
func (v *memoryView) held() []place {
	list := []place{}
	at := uint32(0)
	add := func(off, size, holds uint32) {
		if holds > 0 {
			list = append(list, place{off: off, at: at, size: size})
			at += uint32(align(int64(size)) / 8)
		}
	}
	for _, p := range v.places {
		add(p.off, p.size, p.holds)
	}
	for o := 0; v.places == nil && o+recordHeaderBytes <= len(v.buf); {
		rec, ok := recordAt(v.buf[o:])
		if !ok {
			break
		}
		add(uint32(o/8), uint32(len(rec)), le.Uint32(rec[4:]))
		o += int(align(int64(len(rec))))
	}
	return list
}

func (v *memoryView) holds(off uint32) uint32 {
	if v.places == nil {
		return le.Uint32(v.buf[int(off)*8+4:])
	}
	return v.find(off).holds
}

// copyTo fills a new view from the old one.
func (m *memory) copyTo(g *memorySegment, old *memoryView, places []place, toFile bool) (*memoryView, error) {
	size := int64(0)
	if n := len(places); n > 0 {
		size = int64(places[n-1].at)*8 + align(int64(places[n-1].size))
	}
	buf := make([]byte, size)
	for _, p := range places {
		dst := buf[int(p.at)*8:][:p.size:p.size]
		b, err := old.read(Ref{Off: p.off, Len: p.size}, dst)
		if err != nil {
			return nil, fmt.Errorf("read transient messages: %w", err)
		}
		copy(dst, b[:4]) // bytes 4..8 are the hold count, which is not read without mu
		copy(dst[8:], b[8:])
	}
	v := &memoryView{size: size, places: places}
	if !toFile || size == 0 {
		v.buf = buf
		return v, nil
	}
	v.name = fmt.Sprintf("%s%010d-%d", scratchPrefix, g.id&^memoryBit, len(places))
	f, err := m.fs.Create(filepath.Join(m.dir, v.name), size)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	if n, err := f.WriteAt(buf, 0); err != nil || n < len(buf) {
		f.Close()
		m.fs.Remove(filepath.Join(m.dir, v.name))
		return nil, fmt.Errorf("write scratch file: %w", orShort(err))
	}
	v.file = f
	return v, nil
}
