package store

import "io"

// FS is the disk. All names are paths. Every call may fail.
type FS interface {
	// Create makes a new file of the given size with its space allocated. An
	// existing file is an error.
	Create(name string, size int64) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// Reuse renames an existing file, to be overwritten under its new name. An
	// open File stays usable.
	Reuse(old, name string) error
	// Remove deletes a file.
	Remove(name string) error
	// SyncDir makes creations, renames and removals in dir durable.
	SyncDir(dir string) error
	// List returns the names of the files in dir, without the path.
	List(dir string) ([]string, error)
	// Lock makes dir if it does not exist and locks it against other processes
	// until the result is closed. It returns ErrLocked if another has it.
	Lock(dir string) (io.Closer, error)
}

// File is one open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Datasync makes all writes so far durable.
	Datasync() error
	// Truncate changes the size. Space that this adds is not allocated.
	Truncate(size int64) error
	// PunchHole gives back the space of a part that is not read any more, which
	// then reads as zeros or, if it had not taken effect before a crash, as before.
	// errors.ErrUnsupported if the file system cannot.
	PunchHole(off, n int64) error
	Size() (int64, error)
}
