package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
)

var errPowerCut = errors.New("power cut")

// fakeDisk is a disk in memory that knows what is on stable storage and what is
// not, so that it can produce any state that a power cut may leave: every
// sector of 512 bytes that was not synced is kept, lost or torn, in any
// combination, and directory entries that were not synced are there or not.
type fakeDisk struct {
	mu      sync.Mutex
	dir     map[string]*inode // as the running system sees it
	durable map[string]*inode // as of the last SyncDir
	changes []dirChange       // since then
	calls   int
	cutAt   int // the call with this number is the last, half done; 0 = never
	cut     bool
	locked  bool
	rule    func(call, name string, n int) error // returns the error of the call, or nil
	size    int64                                // bytes that may be allocated, 0 = no limit
	rnd     *rand.Rand
}

// dirChange is a creation (from == ""), a rename, or a removal (to == "").
type dirChange struct {
	from, to string
	node     *inode
}

const sector = 512

type inode struct {
	data   []byte       // as the running system sees it
	stable []byte       // as of the last Datasync
	dirty  map[int]bool // sectors written since
	synced bool         // ever: until then not even the size is sure
}

func newFakeDisk(seed uint64) *fakeDisk {
	return &fakeDisk{
		dir: map[string]*inode{}, durable: map[string]*inode{},
		rnd: rand.New(rand.NewPCG(seed, 1)),
	}
}

// enter counts a call and says whether it fails. half is true for the call in
// which the power goes: it may or may not take effect.
func (d *fakeDisk) enter(call, name string) (half bool, err error) {
	if d.cut {
		return false, errPowerCut
	}
	d.calls++
	if d.cutAt > 0 && d.calls >= d.cutAt {
		d.cut = true
		return true, errPowerCut
	}
	if d.rule != nil {
		err = d.rule(call, filepath.Base(name), d.calls)
	}
	return false, err
}

func (d *fakeDisk) coin() bool { return d.rnd.IntN(2) == 0 }

// reboot returns the disk after a power cut.
func (d *fakeDisk) reboot(seed uint64) *fakeDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
	n := newFakeDisk(seed)
	n.size = d.size
	dir := maps.Clone(d.durable)
	for _, c := range d.changes {
		if d.coin() {
			continue
		}
		if c.from != "" {
			if dir[c.from] != c.node {
				continue // what it builds on is not there
			}
			delete(dir, c.from)
		}
		if c.to != "" {
			dir[c.to] = c.node
		}
	}
	for name, node := range dir {
		data := node.afterCut(d.rnd)
		n.dir[name] = &inode{data: data, stable: slices.Clone(data), dirty: map[int]bool{}, synced: true}
	}
	n.durable = maps.Clone(n.dir)
	return n
}

// kill returns the disk after the process, but not the machine, died.
func (d *fakeDisk) kill(seed uint64) *fakeDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
	n := newFakeDisk(seed)
	n.dir, n.durable, n.changes, n.size = d.dir, d.durable, d.changes, d.size
	return n
}

func (f *inode) afterCut(rnd *rand.Rand) []byte {
	if !f.synced && rnd.IntN(2) == 0 {
		return nil
	}
	data := slices.Clone(f.stable)
	if n := len(f.data); n != len(data) && rnd.IntN(2) == 0 { // it was cut or grew since
		data = append(data, make([]byte, max(0, n-len(data)))...)[:n]
	}
	mode := rnd.IntN(4) // all kept, all lost, or each as it comes
	for s := range f.dirty {
		lo, hi := s*sector, min((s+1)*sector, len(f.data), len(data))
		if lo >= hi {
			continue
		}
		switch k := rnd.IntN(3); {
		case mode == 0 || (mode > 1 && k == 0):
			copy(data[lo:hi], f.data[lo:hi])
		case mode == 1 || k == 1:
		default:
			copy(data[lo:lo+rnd.IntN(hi-lo+1)], f.data[lo:hi])
		}
	}
	return data
}

func (d *fakeDisk) used() int64 {
	var n int64
	for _, f := range d.dir {
		n += int64(len(f.data))
	}
	return n
}

func (d *fakeDisk) Create(name string, size int64) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	half, err := d.enter("create", name)
	if err != nil && (!half || d.coin()) {
		return nil, err
	}
	if d.dir[name] != nil {
		return nil, fs.ErrExist
	}
	if d.size > 0 && d.used()+size > d.size {
		return nil, errNoSpace
	}
	node := &inode{data: make([]byte, size), stable: make([]byte, size), dirty: map[int]bool{}}
	d.dir[name] = node
	d.changes = append(d.changes, dirChange{"", name, node})
	return &fakeFile{d, node, name}, err
}

var errNoSpace = errors.New("no space left on device")

func (d *fakeDisk) Open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.enter("open", name); err != nil {
		return nil, err
	}
	node := d.dir[name]
	if node == nil {
		return nil, fs.ErrNotExist
	}
	return &fakeFile{d, node, name}, nil
}

func (d *fakeDisk) Reuse(old, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	half, err := d.enter("reuse", name)
	if err != nil && (!half || d.coin()) {
		return err
	}
	node := d.dir[old]
	if node == nil {
		return fs.ErrNotExist
	}
	delete(d.dir, old)
	d.dir[name] = node
	d.changes = append(d.changes, dirChange{old, name, node})
	return err
}

func (d *fakeDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	half, err := d.enter("remove", name)
	if err != nil && (!half || d.coin()) {
		return err
	}
	node := d.dir[name]
	if node == nil {
		return fs.ErrNotExist
	}
	delete(d.dir, name)
	d.changes = append(d.changes, dirChange{name, "", node})
	return err
}

func (d *fakeDisk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	half, err := d.enter("syncdir", dir)
	if err != nil && (!half || d.coin()) {
		return err
	}
	d.durable, d.changes = maps.Clone(d.dir), nil
	return err
}

func (d *fakeDisk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.enter("list", dir); err != nil {
		return nil, err
	}
	var names []string
	for name := range d.dir {
		names = append(names, filepath.Base(name))
	}
	slices.Sort(names)
	return names, nil
}

func (d *fakeDisk) Lock(dir string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.enter("lock", dir); err != nil {
		return nil, err
	}
	if d.locked {
		return nil, ErrLocked
	}
	d.locked = true
	return fakeLock{d}, nil
}

type fakeLock struct{ d *fakeDisk }

func (l fakeLock) Close() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	l.d.locked = false
	return nil
}

type fakeFile struct {
	d    *fakeDisk
	node *inode
	name string
}

func (f *fakeFile) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.enter("read", f.name); err != nil {
		return 0, err
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *fakeFile) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	half, err := f.d.enter("write", f.name)
	n := len(b)
	switch {
	case half:
		n = f.d.rnd.IntN(n + 1)
	case errors.Is(err, errShort):
		n, err = n/2, nil
	case err != nil:
		return 0, err
	}
	if off+int64(n) > int64(len(f.node.data)) {
		return 0, fmt.Errorf("write beyond the allocated %d bytes", len(f.node.data))
	}
	copy(f.node.data[off:], b[:n])
	for s := int(off) / sector; s*sector < int(off)+n; s++ {
		f.node.dirty[s] = true
	}
	return n, err
}

var errShort = errors.New("short write")

func (f *fakeFile) Datasync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	half, err := f.d.enter("sync", f.name)
	if err != nil && (!half || f.d.coin()) {
		return err
	}
	f.node.stable = slices.Clone(f.node.data)
	clear(f.node.dirty)
	f.node.synced = true
	return err
}

func (f *fakeFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.enter("truncate", f.name); err != nil {
		return err
	}
	more := size - int64(len(f.node.data))
	if more > 0 && f.d.size > 0 && f.d.used()+more > f.d.size {
		return errNoSpace
	}
	f.node.data = append(f.node.data, make([]byte, max(0, more))...)[:size]
	return nil
}

func (f *fakeFile) PunchHole(off, n int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.enter("punch", f.name); err != nil {
		return err
	}
	clear(f.node.data[off : off+n])
	clear(f.node.stable[off : off+n])
	return nil
}

func (f *fakeFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	_, err := f.d.enter("size", f.name)
	return int64(len(f.node.data)), err
}

func (f *fakeFile) Close() error { return nil }
