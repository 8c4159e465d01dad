package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OSFS is the file system of the operating system.
type OSFS struct{}

var _ FS = OSFS{}

// OS returns the file system of the operating system.
func OS() FS { return OSFS{} }

type osFile struct{ *os.File }

const lockName = "LOCK"

// Create implements FS.
func (OSFS) Create(name string, size int64) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := allocate(f, size); err != nil {
		f.Close()
		return nil, errors.Join(err, os.Remove(name))
	}
	return osFile{f}, nil
}

// allocate gives the file its size and space, so that writing to it later
// cannot fail for lack of room.
func allocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	err := fallocate(f, size)
	if errors.Is(err, errors.ErrUnsupported) {
		return zeroFill(f, size)
	}
	if err != nil {
		return fmt.Errorf("allocate %s: %w", f.Name(), err)
	}
	return nil
}

func zeroFill(f *os.File, size int64) error {
	zeros := make([]byte, min(size, 1<<20))
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// Open implements FS.
func (OSFS) Open(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Reuse implements FS.
func (OSFS) Reuse(old, name string) error { return os.Rename(old, name) }

// Remove implements FS.
func (OSFS) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS.
func (OSFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// List implements FS.
func (OSFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Lock implements FS with flock on a file in dir.
func (OSFS) Lock(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory is not writable: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return f, nil
}

func (f osFile) Datasync() error { return datasync(f.File) }

func (f osFile) PunchHole(off, n int64) error { return punchHole(f.File, off, n) }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
