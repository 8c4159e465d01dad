package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"path/filepath"
	"slices"
	"sync"
)

// Scratch is room on the disk for pages of one size that need not survive the process. It grows
// by files of many pages each; a file goes when none of its pages is in use. What a crash leaves
// behind is removed by the next Open. All methods may be called concurrently.
type Scratch struct {
	fs    FS
	dir   string
	name  string
	bytes int // of a page
	table *crc32.Table

	mu     sync.Mutex // a leaf lock, never held while the disk is waited for
	files  []*scratchFile
	empty  []*scratchFile // to be removed
	made   int            // files so far
	pages  int            // in use
	closed bool
}

// Page is the place of a page in a Scratch. 0 is none.
type Page uint32

// scratchPages is how many pages a file has.
const scratchPages = 512

// scratchFile is guarded by Scratch.mu, as is which page belongs to whom; the content of a page
// belongs to whoever has its Page.
type scratchFile struct {
	file File
	name string
	used int
	free [scratchPages / 64]uint64 // bit set: nobody has the page
	sums [scratchPages]uint32      // crc32c of the content
}

// NewScratch returns an empty Scratch in the store's directory, to be closed before the store is.
// No other of the same store may have the name.
func (s *Store) NewScratch(name string, pageBytes int) *Scratch {
	return newScratch(s.log.fs, s.log.dir, name, pageBytes)
}

func newScratch(fs FS, dir, name string, pageBytes int) *Scratch {
	return &Scratch{fs: fs, dir: dir, name: name, bytes: pageBytes, table: crcTable()}
}

// Write stores a page and returns where it is. It waits for the disk, but not until the page is
// durable. After an error nothing is stored.
func (s *Scratch) Write(content []byte) (Page, error) {
	n, f, err := s.take()
	if err != nil {
		return 0, err
	}
	at := int64(n%scratchPages) * int64(s.bytes)
	if k, err := f.file.WriteAt(content, at); err != nil || k < len(content) {
		s.Free(Page(n + 1))
		return 0, fmt.Errorf("write scratch file: %w", orShort(err))
	}
	s.mu.Lock()
	f.sums[n%scratchPages] = crc32.Checksum(content, s.table)
	s.mu.Unlock()
	return Page(n + 1), nil
}

// take finds a free page in the files there are, or makes one more.
func (s *Scratch) take() (n int, f *scratchFile, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.closed {
			return 0, nil, ErrClosed
		}
		for i, f := range s.files {
			if f != nil && f.used < scratchPages {
				return i*scratchPages + s.takeFromLocked(f), f, nil
			}
		}
		s.made++
		name := fmt.Sprintf("%s%s-%06d", scratchPrefix, s.name, s.made)
		s.mu.Unlock()
		f, err := s.create(name)
		s.mu.Lock()
		if err != nil {
			return 0, nil, err
		}
		s.addLocked(f)
	}
}

func (s *Scratch) takeFromLocked(f *scratchFile) int {
	for w := range f.free {
		if f.free[w] != 0 {
			b := bits.TrailingZeros64(f.free[w])
			f.free[w] &^= 1 << b
			f.used++
			s.pages++
			return w*64 + b
		}
	}
	invariant(false, "a scratch file has a free page that is not found")
	return 0
}

func (s *Scratch) create(name string) (*scratchFile, error) {
	f := &scratchFile{name: name}
	for w := range f.free {
		f.free[w] = ^uint64(0)
	}
	var err error
	f.file, err = s.fs.Create(filepath.Join(s.dir, f.name), scratchPages*int64(s.bytes))
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	return f, nil
}

// addLocked puts a new file at the lowest number that is vacant.
func (s *Scratch) addLocked(f *scratchFile) {
	if s.closed {
		s.empty = append(s.empty, f)
		return
	}
	i := slices.Index(s.files, nil)
	if i < 0 {
		i = len(s.files)
		s.files = append(s.files, nil)
	}
	s.files[i] = f
}

// Read reads a page into content, which is as long as what was written. Damage is a
// *CorruptError. The page must not be freed meanwhile, or what is read may be anything.
func (s *Scratch) Read(p Page, content []byte) error {
	n := int(p) - 1
	s.mu.Lock()
	if s.closed || n < 0 || n/scratchPages >= len(s.files) || s.files[n/scratchPages] == nil {
		s.mu.Unlock()
		return ErrClosed
	}
	f := s.files[n/scratchPages]
	sum := f.sums[n%scratchPages]
	s.mu.Unlock()
	at := int64(n%scratchPages) * int64(s.bytes)
	if k, err := f.file.ReadAt(content, at); k < len(content) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read scratch file: %w", err)
	}
	if crc32.Checksum(content, s.table) != sum {
		return &CorruptError{File: f.name, Offset: at, Reason: "checksum mismatch"}
	}
	return nil
}

// Free gives a page back. It does not wait for the disk: it reports whether a file is empty now,
// which Trim then removes.
func (s *Scratch) Free(p Page) (trim bool) {
	n := int(p) - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	f, b := s.files[n/scratchPages], n%scratchPages
	invariant(f.free[b/64]>>(b%64)&1 == 0, "a page is freed twice")
	f.free[b/64] |= 1 << (b % 64)
	f.used--
	s.pages--
	if f.used > 0 {
		return false
	}
	s.files[n/scratchPages] = nil
	s.empty = append(s.empty, f)
	return true
}

// Trim removes the files that Free has emptied.
func (s *Scratch) Trim() {
	s.mu.Lock()
	empty := s.empty
	s.empty = nil
	s.mu.Unlock()
	for _, f := range empty {
		f.file.Close()
		s.fs.Remove(filepath.Join(s.dir, f.name)) // else it goes at the next Open
	}
}

// Bytes returns how much the pages in use are together.
func (s *Scratch) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.pages) * int64(s.bytes)
}

// Close removes all files. Nothing is read or written afterwards.
func (s *Scratch) Close() {
	s.mu.Lock()
	for _, f := range s.files {
		if f != nil {
			s.empty = append(s.empty, f)
		}
	}
	s.closed, s.files, s.pages = true, nil, 0
	s.mu.Unlock()
	s.Trim()
}
