package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
)

// BodyRef says where a large body is. The zero value is nowhere: the body is in
// the record. It may be copied from a record that was read into a message that is
// appended, which then shares the body; that is safe while the first is held.
type BodyRef struct {
	File   uint32 // id of the body file
	Block  uint32 // its place there, in units of 4096 bytes
	Length uint32
	CRC    uint32 // crc32c of the body
}

const (
	bodyRefBytes = 16
	bodyMagic    = "DUEPBODY"
	// bodyBlock is what bodies are aligned to, so that each can be given back to the
	// file system alone. The first block of a file is its header.
	bodyBlock = holeUnit
	// bodyPiece is how much of a body is written at once, and bodySync how much lies
	// between two syncs: the log's never find much to do before them.
	bodyPiece = 1 << 20
	bodySync  = 4 << 20
)

func (r BodyRef) isSet() bool { return r.Length != 0 }

func (r BodyRef) offset() int64 { return int64(r.Block) * bodyBlock }

// bodies are the large bodies: raw bytes in files of their own, written and synced
// by the goroutine of their publisher before the log has a record that names them.
// So no record names a body that a crash lost, and nobody else waits for it.
//
// A body is needed while it is claimed: by a position of a queue, or by an entry
// that waits, known by its sequence number. Neither is ever used twice, so the end
// of a claim is final, whoever says it and however often. What is not claimed any
// more is given back when the log is durable that far.
type bodies struct {
	log   *log
	kick  chan struct{}
	quit  chan struct{}
	roles sync.WaitGroup

	inQueues atomic.Int64 // claims by positions; spares the lock where there are none
	waiting  atomic.Int64 // claims by entries

	mu   sync.Mutex
	room sync.Cond // on mu: a file was made, or could not be

	// Guarded by mu.

	files    map[uint32]*bodyFile
	active   *bodyFile
	creating bool
	short    bool // the last file could not be made: there is no room
	queues   map[uint32]map[uint64]*body
	waits    map[uint64]*waitingBody // by sequence number
	bytes    map[uint32]uint64       // of what waits, by exchange
	dead     []*body
	sealed   []*bodyFile // to be cut to their length
	rescued  []uint64    // entries whose claims recovery found in runs only; the log does not have them yet
	found    []*bodyFile // by recovery: the gaps between their bodies are not given back yet
}

// body is one large body.
type body struct {
	ref    BodyRef
	file   *bodyFile
	claims int // and pins of those who work with it; guarded by bodies.mu
}

// waitingBody is the body of an entry that waits or is in flight.
type waitingBody struct {
	*body
	exchange uint32
	in       uint32 // the segment with the last record that names it
	claimIn  uint32 // the same if that is a claim record, else 0
}

// bodyFile is a file of bodies. It is appended to, and never reused.
type bodyFile struct {
	id      uint32
	name    string
	file    File
	size    int64
	retired atomic.Bool // gone; what is read may be anything

	written atomic.Uint64 // how often somebody wanted a sync
	syncing sync.Mutex    // held during a sync, under no other lock
	synced  uint64        // of written; guarded by syncing
	failed  error         // guarded by syncing

	// Guarded by bodies.mu.

	end    int64
	full   bool             // nothing is appended any more
	bodies map[uint32]*body // by block; those that are not given back
}

func newBodies(l *log) *bodies {
	b := &bodies{
		log: l, kick: make(chan struct{}, 1), quit: make(chan struct{}),
		files: map[uint32]*bodyFile{}, queues: map[uint32]map[uint64]*body{},
		waits: map[uint64]*waitingBody{}, bytes: map[uint32]uint64{},
	}
	b.room.L = &b.mu
	return b
}

func (b *bodies) start() {
	b.roles.Go(b.run)
	wake(b.kick)
}

func (b *bodies) stop() {
	close(b.quit)
	b.mu.Lock()
	b.room.Broadcast()
	b.mu.Unlock()
	b.roles.Wait()
}

// release closes all files.
func (b *bodies) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		f.retired.Store(true)
		f.file.Close()
	}
}

// isLarge says that the body is to be, or is, in a body file.
func (s *Store) isLarge(m *Message) bool {
	return len(m.Body) >= s.log.o.LargeBytes || m.Large.isSet()
}

// keep returns the body of a large message with a pin: the one it names, or one
// that is written and synced now. ErrFull if there is no room.
func (b *bodies) keep(m *Message) (*body, error) {
	if m.Large.isSet() {
		return b.pin(m.Large)
	}
	y, err := b.reserve(int64(len(m.Body)))
	if err != nil {
		return nil, err
	}
	if err := b.write(y, m.Body); err != nil {
		b.unpin(y)
		return nil, err
	}
	return y, nil
}

func (b *bodies) pin(ref BodyRef) (*body, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.files[ref.File]; f != nil {
		if y := f.bodies[ref.Block]; y != nil && y.claims > 0 && y.ref == ref {
			y.claims++
			return y, nil
		}
	}
	return nil, &CorruptError{File: bodyName(ref.File), Offset: ref.offset(), Reason: "body is not there"}
}

func (b *bodies) unpin(y *body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropLocked(y)
}

// dropLocked ends one claim or pin.
func (b *bodies) dropLocked(y *body) {
	if y.claims--; y.claims == 0 {
		b.dead = append(b.dead, y)
		wake(b.kick)
	}
}

// reserve finds a place for n bytes. It waits for a file to be made, but not for
// what others write.
func (b *bodies) reserve(n int64) (*body, error) {
	need := alignBlock(n)
	whole := b.log.o.BodyFileBytes
	if bodyBlock+need > whole {
		f, err := b.create(bodyBlock + need)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		f.full = true
		return f.takeLocked(n, need), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if f := b.active; f != nil && f.end+need <= f.size {
			return f.takeLocked(n, need), nil
		}
		if b.creating {
			b.room.Wait()
			continue
		}
		if err := b.renewLocked(whole); err != nil {
			return nil, err
		}
	}
}

// renewLocked makes another file the active one. The lock is released meanwhile.
func (b *bodies) renewLocked(size int64) error {
	b.creating = true
	b.mu.Unlock()
	f, err := b.create(size)
	b.mu.Lock()
	b.creating = false
	b.room.Broadcast()
	if err != nil {
		if errors.Is(err, ErrFull) {
			b.short = true
			wake(b.kick) // it tells, and tries again
		}
		return err
	}
	if b.short {
		b.short = false
		wake(b.kick)
	}
	if old := b.active; old != nil {
		old.full = true
		b.sealed = append(b.sealed, old)
		wake(b.kick)
	}
	b.active = f
	return nil
}

func (f *bodyFile) takeLocked(n, need int64) *body {
	y := &body{ref: BodyRef{File: f.id, Block: uint32(f.end / bodyBlock), Length: uint32(n)}, file: f, claims: 1}
	f.end += need
	f.bodies[y.ref.Block] = y
	return y
}

func alignBlock(n int64) int64 { return (n + bodyBlock - 1) &^ (bodyBlock - 1) }

// create makes a file that is durable as a directory entry. Only here can there be
// too little space.
func (b *bodies) create(size int64) (*bodyFile, error) {
	l := b.log
	l.mu.Lock()
	id, err := l.nextID, l.err
	l.nextID++
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f := newBodyFile(id)
	f.size, f.end = size, bodyBlock
	if f.file, err = l.fs.Create(l.path(f.name), size); err != nil {
		l.logger.Warn("no room for large messages", "bytes", size, "err", err)
		return nil, errors.Join(ErrFull, fmt.Errorf("create body file: %w", err))
	}
	h := segmentHeader{version: formatVersion, id: id, nonce: l.nonce}
	head := make([]byte, segmentHeaderBytes)
	h.putAs(bodyMagic, head, l.table)
	err = f.writeAt(head, 0)
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		f.file.Close()
		return nil, l.stopWith("make body file of the", err)
	}
	b.mu.Lock()
	b.files[id] = f
	b.mu.Unlock()
	return f, nil
}

func newBodyFile(id uint32) *bodyFile {
	return &bodyFile{id: id, name: bodyName(id), bodies: map[uint32]*body{}}
}

func bodyName(id uint32) string { return fmt.Sprintf("body-%010d", id) }

func parseBodyName(name string) (uint32, bool) {
	var id uint32
	if n, err := fmt.Sscanf(name, "body-%010d", &id); n != 1 || err != nil || bodyName(id) != name {
		return 0, false
	}
	return id, true
}

// stopWith stops the log because of a failed write or sync, and returns why it is
// stopped.
func (l *log) stopWith(op string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failLocked(failed(op, err))
	return l.err
}

// write writes a body to its place, piece by piece, and syncs it. Nobody knows of
// it yet, and no lock is held.
func (b *bodies) write(y *body, data []byte) error {
	l, f := b.log, y.file
	crc := uint32(0)
	for o := 0; o < len(data); o += bodyPiece {
		piece := data[o:min(o+bodyPiece, len(data))]
		if err := l.failure(); err != nil {
			return err
		}
		if err := f.writeAt(piece, y.ref.offset()+int64(o)); err != nil {
			return l.stopWith("write body file of the", err)
		}
		crc = crc32.Update(crc, l.table, piece)
		if (o+bodyPiece)%bodySync == 0 {
			if err := f.sync(l); err != nil {
				return err
			}
		}
	}
	y.ref.CRC = crc
	return f.sync(l)
}

func (f *bodyFile) writeAt(b []byte, off int64) error {
	if n, err := f.file.WriteAt(b, off); err != nil || n < len(b) {
		return orShort(err)
	}
	return nil
}

// sync makes durable what the caller has written, with one sync for all who want
// one at the same time. After a failure there is no other.
func (f *bodyFile) sync(l *log) error {
	n := f.written.Add(1)
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.failed != nil || f.synced >= n {
		return f.failed
	}
	upTo := f.written.Load()
	if err := f.file.Datasync(); err != nil {
		f.failed = l.stopWith("sync body file of the", err)
		return f.failed
	}
	f.synced = upTo
	return nil
}

// locate returns the file that a body is in. Before that the length in a reference
// is not to be trusted.
func (b *bodies) locate(ref BodyRef) (*bodyFile, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.files[ref.File]
	if f == nil {
		return nil, &CorruptError{File: bodyName(ref.File), Offset: ref.offset(), Reason: "body file is missing"}
	}
	if ref.offset()+int64(ref.Length) > f.size {
		return nil, &CorruptError{File: f.name, Offset: ref.offset(), Reason: "body beyond the end of the file"}
	}
	return f, nil
}

// read reads a body into a buffer of its length, or a new one if buf is shorter, and
// verifies it. What is in the first at bytes of buf comes before it.
func (b *bodies) read(ref BodyRef, buf []byte, at int) ([]byte, error) {
	f, err := b.locate(ref)
	if err != nil {
		return nil, err
	}
	n := at + int(ref.Length)
	if cap(buf) < n {
		buf = append(make([]byte, 0, n), buf[:at]...)
	}
	buf = buf[:n]
	return buf, b.fill(f, ref, buf[at:])
}

func (b *bodies) fill(f *bodyFile, ref BodyRef, buf []byte) error {
	if err := readFull(f.file, buf, ref.offset()); err != nil && !f.retired.Load() {
		return fmt.Errorf("read body: %w", err)
	}
	if crc32.Checksum(buf, b.log.table) == ref.CRC {
		return nil
	}
	if !b.has(ref) {
		return ErrMoved // given back during the read
	}
	return &CorruptError{File: f.name, Offset: ref.offset(), Reason: "checksum mismatch"}
}

// isIntact reads a body piece by piece and verifies it.
func (f *bodyFile) isIntact(ref BodyRef, table *crc32.Table) (bool, error) {
	buf := make([]byte, bodyPiece)
	crc := uint32(0)
	for o := int64(0); o < int64(ref.Length); o += bodyPiece {
		piece := buf[:min(bodyPiece, int64(ref.Length)-o)]
		if err := readFull(f.file, piece, ref.offset()+o); err != nil {
			return false, fmt.Errorf("read body in %s: %w", f.name, err)
		}
		crc = crc32.Update(crc, table, piece)
	}
	return crc == ref.CRC, nil
}

// has reports whether a body is still needed.
func (b *bodies) has(ref BodyRef) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.files[ref.File]
	return f != nil && f.bodies[ref.Block] != nil
}
