package store

import (
	"errors"
	"fmt"
)

const (
	writePiece = 1 << 20
	// syncPiece is how much of a run is written between two syncs, so that those of
	// the log never find much to do before them.
	syncPiece = 8 << 20
)

// runWriter writes a run, record by record in key order.
type runWriter struct {
	log    *log
	run    *run
	view   messageView
	buf    []byte
	at     int64 // of buf in the file
	synced int64
}

// newRunWriter creates the file of a run of at most size bytes of records.
func newRunWriter(l *log, size int64) (*runWriter, error) {
	l.mu.Lock()
	id, born := l.nextID, l.lsn
	l.nextID++
	l.mu.Unlock()
	r := newRun(l, id)
	r.placeOf = map[uint32]int{}
	r.end = segmentHeaderBytes / 8
	f, err := l.fs.Create(l.path(r.name), segmentHeaderBytes+size)
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	r.file = f
	w := &runWriter{log: l, run: r, buf: make([]byte, segmentHeaderBytes, writePiece+writePiece/4)}
	h := segmentHeader{version: formatVersion, id: id, nonce: l.nonce, firstLSN: born}
	h.putAs(runMagic, w.buf, l.table)
	return w, nil
}

// add appends a record, which is copied, under the given key.
func (w *runWriter) add(k Key, rec []byte) (off uint32, err error) {
	if recordKey(rec) != k {
		if rec, err = w.rekeyed(k, rec); err != nil {
			return 0, err
		}
	}
	r := w.run
	off = r.end
	n := len(r.blocks)
	if n == 0 || int64(off-r.blocks[n-1].off)*8+int64(len(rec)) > w.log.o.RunBlockBytes {
		r.blocks = append(r.blocks, block{k, off, r.count})
		n++
	}
	start := len(w.buf)
	w.buf = append(w.buf, rec...)
	copied := w.buf[start:]
	le.PutUint16(copied[14:], uint16(r.count-r.blocks[n-1].ordinal))
	copied[13] &^= flagMore | flagCont
	sealRecord(copied, r.salt, w.log.table)
	w.buf = appendPad(w.buf)
	r.note(copied[:len(rec)], k)
	r.keys.gather(copied[:len(rec)], off)
	r.count++
	r.end = afterRecord(off, uint32(len(rec)))
	if len(w.buf) < writePiece {
		return off, nil
	}
	return off, w.drain()
}

// rekeyed returns the record under another key.
func (w *runWriter) rekeyed(k Key, rec []byte) ([]byte, error) {
	v := &w.view
	if !parseMessage(rec, v) {
		return nil, &CorruptError{File: w.run.name, Reason: "record cannot be decoded"}
	}
	b, err := appendDelayedCopy(nil, v, k)
	if err != nil {
		return nil, err
	}
	return b[:le.Uint32(b)], nil
}

// appendDelayedCopy appends the record of a delayed message under a key that may
// differ from its own, padded.
func appendDelayedCopy(b []byte, v *messageView, k Key) ([]byte, error) {
	p := messageParts{kind: kindDelayed, flags: flagCopy, key: k, origin: v.Key.Due}
	if v.flags&flagOrigin != 0 {
		p.origin = v.origin
	}
	if p.origin != k.Due {
		p.flags |= flagOrigin
	}
	size, err := messageSize(kindDelayed, &v.Message, 0, p.flags&flagOrigin != 0)
	if err != nil {
		return nil, err
	}
	at := len(b)
	b = grow(b, int(align(int64(size))))
	putMessage(b[at:at+size], &v.Message, &p)
	return b, nil
}

// drain writes out what has gathered.
func (w *runWriter) drain() error {
	f := w.run.file
	if n, err := f.WriteAt(w.buf, w.at); err != nil || n < len(w.buf) {
		return fmt.Errorf("write run: %w", orShort(err))
	}
	w.at += int64(len(w.buf))
	w.buf = w.buf[:0]
	if w.at-w.synced < syncPiece {
		return nil
	}
	w.synced = w.at
	if err := f.Datasync(); err != nil {
		return failed("sync run of the", err)
	}
	return w.log.failure()
}

// finish makes the run durable.
func (w *runWriter) finish() (*run, error) {
	l, r := w.log, w.run
	r.keys.at = int64(r.end) * 8
	r.listsAt = r.keys.at + r.keys.bytes()
	r.keys.makeFilter()
	w.buf = r.appendTail(w.buf, l)
	r.placeOf, r.lists, r.keys.list = nil, nil, nil
	l.keepFilter(r)
	r.size = w.at + int64(len(w.buf))
	if err := r.file.Truncate(r.size); err != nil {
		return nil, fmt.Errorf("set size of run: %w", err)
	}
	if err := w.drain(); err != nil {
		return nil, err
	}
	if err := r.file.Datasync(); err != nil {
		return nil, failed("sync run of the", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return nil, failed("sync directory of the", err)
	}
	return r, nil
}

// abandon removes an unfinished run. The next start removes what this cannot.
func (w *runWriter) abandon() {
	if w.run.placeOf == nil {
		w.log.releaseFilter(w.run)
	}
	err := errors.Join(w.run.file.Close(), w.log.fs.Remove(w.log.path(w.run.name)))
	if err != nil {
		w.log.logger.Warn("cannot remove an unfinished run", "file", w.run.name, "err", err)
	}
}
