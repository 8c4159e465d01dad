package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// readOnlyFS is the file system of the operating system for those who only look.
type readOnlyFS struct{ OSFS }

var _ FS = readOnlyFS{}

// ReadOnly returns the file system of the operating system without everything
// that changes something: Open opens for reading, Lock keeps out those who write
// but makes no file, and all else is refused.
func ReadOnly() FS { return readOnlyFS{} }

var errReadOnly = errors.New("the directory is only looked at")

func (readOnlyFS) Create(string, int64) (File, error) { return nil, errReadOnly }

func (readOnlyFS) Reuse(string, string) error { return errReadOnly }

func (readOnlyFS) Remove(string) error { return errReadOnly }

func (readOnlyFS) SyncDir(string) error { return errReadOnly }

func (readOnlyFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return readOnlyFile{osFile{f}}, nil
}

// Lock shares the lock with others who look. Where there is no lock file no
// store was ever opened, so there is nobody to keep out.
func (readOnlyFS) Lock(dir string) (io.Closer, error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return noLock{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return f, nil
}

type noLock struct{}

func (noLock) Close() error { return nil }

type readOnlyFile struct{ osFile }

func (readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, errReadOnly }

func (readOnlyFile) Datasync() error { return errReadOnly }

func (readOnlyFile) Truncate(int64) error { return errReadOnly }

func (readOnlyFile) PunchHole(int64, int64) error { return errReadOnly }
