package storebench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Yardsticks are what the disk does without a store.
type Yardsticks struct {
	SyncedMB   float64 `json:"disk_256k_write_sync_mb_per_s"` // write 256 KiB, fdatasync, again
	Syncs      float64 `json:"disk_4k_write_sync_per_s"`      // write 4 KiB, fdatasync, again
	ColdReadMB float64 `json:"disk_cold_read_mb_per_s"`       // sequential, nothing cached
}

const (
	yardFile = 256 << 20
	yardTime = 1500 * time.Millisecond
)

// measureDisk takes the yardsticks in dir, on a file that was written before, so
// that a sync needs no change of the file's metadata.
func measureDisk(dir string) (y Yardsticks, err error) {
	name := filepath.Join(dir, "yardstick")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return y, err
	}
	defer os.Remove(name)
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for off := int64(0); off < yardFile; off += int64(len(chunk)) {
		if _, err := f.WriteAt(chunk, off); err != nil {
			return y, err
		}
	}
	if err := f.Sync(); err != nil {
		return y, err
	}
	n, took, err := syncLoop(f, 256<<10)
	if err != nil {
		return y, err
	}
	y.SyncedMB = float64(n) * (256 << 10) / 1e6 / took.Seconds()
	if n, took, err = syncLoop(f, 4<<10); err != nil {
		return y, err
	}
	y.Syncs = float64(n) / took.Seconds()
	y.ColdReadMB, err = coldRead(f)
	return y, err
}

func syncLoop(f *os.File, size int) (n int, took time.Duration, err error) {
	b := make([]byte, size)
	start := time.Now()
	for took < yardTime {
		off := int64(n) * int64(size) % yardFile
		if _, err := f.WriteAt(b, off); err != nil {
			return n, took, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return n, took, err
		}
		n++
		took = time.Since(start)
	}
	return n, took, nil
}

func coldRead(f *os.File) (mbPerSecond float64, err error) {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, err
	}
	b := make([]byte, 64<<10)
	start := time.Now()
	for off := int64(0); off < yardFile; off += int64(len(b)) {
		if _, err := f.ReadAt(b, off); err != nil {
			return 0, err
		}
	}
	return yardFile / 1e6 / time.Since(start).Seconds(), nil
}

// forgetCache makes the system forget what it has cached of the files in dir.
func forgetCache(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// watch measures wall and processor time.
type watch struct {
	start time.Time
	busy  time.Duration
}

func stopwatch() watch { return watch{time.Now(), processTime()} }

func (w watch) stop() (took, busy time.Duration) {
	return time.Since(w.start), processTime() - w.busy
}

func processTime() time.Duration { return cpuTime(unix.RUSAGE_SELF) }

// threadTime is processor time of the calling thread.
func threadTime() time.Duration { return cpuTime(unix.RUSAGE_THREAD) }

func cpuTime(who int) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0 // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentMiB returns VmHWM (the peak) or VmRSS of this process.
func residentMiB(field string) (int64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ":")
		if name == field {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kb >> 10, err
		}
	}
	return 0, fmt.Errorf("read memory in use: no %s", field)
}
