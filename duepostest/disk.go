package duepostest

import (
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/duepost/duepost/internal/store"
)

// disk is a disk in memory: tests do not wait for a real one, nor for who else uses it. What was
// written is there after Kill, as it is after kill -9 on a real disk.
type disk struct {
	mu     sync.Mutex
	files  map[string]*file // by path; guarded by mu
	locked bool             // guarded by mu
}

var _ store.FS = (*disk)(nil)

func newDisk() *disk { return &disk{files: map[string]*file{}} }

// Create implements store.FS.
func (d *disk) Create(name string, size int64) (store.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f := &file{data: make([]byte, size)}
	d.files[name] = f
	return f, nil
}

// Open implements store.FS.
func (d *disk) Open(name string) (store.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.findLocked("open", name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Reuse implements store.FS.
func (d *disk) Reuse(old, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.findLocked("rename", old)
	if err != nil {
		return err
	}
	delete(d.files, old)
	d.files[name] = f
	return nil
}

// Remove implements store.FS.
func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.findLocked("remove", name)
	delete(d.files, name)
	return err
}

func (d *disk) findLocked(op, name string) (*file, error) {
	if f := d.files[name]; f != nil {
		return f, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// SyncDir implements store.FS.
func (d *disk) SyncDir(string) error { return nil }

// List implements store.FS.
func (d *disk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.files {
		if filepath.Dir(name) == filepath.Clean(dir) {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

// Lock implements store.FS. There is one directory.
func (d *disk) Lock(string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, store.ErrLocked
	}
	d.locked = true
	return unlocker{d}, nil
}

type unlocker struct{ d *disk }

// Close unlocks the directory.
func (u unlocker) Close() error {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	u.d.locked = false
	return nil
}

// file is a file of a disk. Closing it changes nothing.
type file struct {
	mu   sync.RWMutex
	data []byte // guarded by mu
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resizeLocked(max(int64(len(f.data)), off+int64(len(b))))
	return copy(f.data[off:], b), nil
}

// Truncate implements store.File.
func (f *file) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resizeLocked(size)
	return nil
}

func (f *file) resizeLocked(size int64) {
	if more := size - int64(len(f.data)); more > 0 {
		f.data = append(f.data, make([]byte, more)...)
	}
	f.data = f.data[:size:size] // what is cut off reads as zeros if it comes back
}

// PunchHole implements store.File.
func (f *file) PunchHole(off, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.data[off:min(off+n, int64(len(f.data)))])
	return nil
}

// Size implements store.File.
func (f *file) Size() (int64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return int64(len(f.data)), nil
}

// Datasync implements store.File.
func (f *file) Datasync() error { return nil }

// Close implements io.Closer.
func (f *file) Close() error { return nil }
