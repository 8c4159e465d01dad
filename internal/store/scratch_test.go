package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// scratchModel is a Scratch and what should be in it.
type scratchModel struct {
	t    *testing.T
	disk *fakeDisk
	s    *Scratch
	want map[Page][]byte
}

func newScratchModel(t *testing.T) *scratchModel {
	disk := newFakeDisk(1)
	return &scratchModel{t: t, disk: disk, s: newScratch(disk, "d", "test", 64), want: map[Page][]byte{}}
}

func (m *scratchModel) write(b byte) error {
	content := bytes.Repeat([]byte{b}, 64)
	p, err := m.s.Write(content)
	if err != nil {
		return err
	}
	if m.want[p] != nil || p == 0 {
		m.t.Fatalf("page %d was given to two, or is none", p)
	}
	m.want[p] = content
	return nil
}

func (m *scratchModel) check() {
	m.t.Helper()
	got := make([]byte, 64)
	for p, want := range m.want {
		if err := m.s.Read(p, got); err != nil || !bytes.Equal(got, want) {
			m.t.Fatalf("page %d: got %x, %v, want %x", p, got[0], err, want[0])
		}
	}
	if got := m.s.Bytes(); got != int64(64*len(m.want)) {
		m.t.Errorf("Bytes = %d, want %d", got, 64*len(m.want))
	}
}

func TestScratchKeepsPagesAndGivesBackFiles(t *testing.T) {
	t.Parallel()
	m := newScratchModel(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 3 {
		for i := range 3 * scratchPages {
			if err := m.write(byte(i + round)); err != nil {
				t.Fatal(err)
			}
		}
		m.check()
		for p := range m.want {
			if rng.IntN(10) > 0 {
				m.s.Free(p)
				delete(m.want, p)
			}
		}
		m.check()
	}
	if got := len(m.disk.dir); got > 4 {
		t.Errorf("got %d files for what was at most 4 files of pages", got)
	}
	trims := 0
	for p := range m.want {
		if m.s.Free(p) {
			trims++
		}
	}
	m.s.Trim()
	if left := len(m.disk.dir); left != 0 || trims == 0 {
		t.Errorf("got %d files of no pages, %d were reported empty", left, trims)
	}
	m.want = map[Page][]byte{}
	if err := m.write(9); err != nil {
		t.Fatal(err)
	}
	m.check()
	m.s.Close()
	if left := len(m.disk.dir); left != 0 {
		t.Errorf("got %d files after Close", left)
	}
	if err := m.write(1); !errors.Is(err, ErrClosed) {
		t.Errorf("write after Close: %v", err)
	}
}

func TestScratchSurvivesFaults(t *testing.T) {
	t.Parallel()
	m := newScratchModel(t)
	for _, call := range []string{"create", "write"} {
		m.disk.rule = func(c, _ string, _ int) error {
			if c == call {
				return errNoSpace
			}
			return nil
		}
		if err := m.write(1); !errors.Is(err, errNoSpace) {
			t.Errorf("%s: got %v, want %v", call, err, errNoSpace)
		}
		m.disk.rule = nil
		if err := m.write(2); err != nil {
			t.Errorf("after a failed %s: %v", call, err)
		}
		m.check()
	}
	p := Page(1)
	m.disk.rule = func(c, _ string, _ int) error {
		if c == "read" {
			return errIO
		}
		return nil
	}
	if err := m.s.Read(p, make([]byte, 64)); !errors.Is(err, errIO) {
		t.Errorf("read: got %v, want %v", err, errIO)
	}
	m.disk.rule = nil
	for name, node := range m.disk.dir {
		if strings.HasPrefix(name, "d/"+scratchPrefix) {
			node.data[5] ^= 1
		}
	}
	var damage *CorruptError
	if err := m.s.Read(p, make([]byte, 64)); !errors.As(err, &damage) {
		t.Errorf("damaged page: got %v, want a CorruptError", err)
	}
}

func TestScratchOfACrashGoesAtOpen(t *testing.T) {
	t.Parallel()
	disk := newFakeDisk(1)
	s, err := Open(disk, "d", tiny())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewScratch("left", 64).Write(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	s.Abandon()
	disk = disk.kill(1)
	if s, err = Open(disk, "d", tiny()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name := range disk.dir {
		if strings.Contains(name, scratchPrefix) {
			t.Errorf("%s is still there", name)
		}
	}
}
