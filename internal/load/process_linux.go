package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of utime and stime in /proc/PID/stat. The kernel's USER_HZ is 100 on
// every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// usage is what a process has used of the machine.
type usage struct {
	cpu      time.Duration // user and system
	rssBytes int64
}

// readUsage adds up a process and, if asked to, its descendants.
func readUsage(pid int, children bool) (usage, error) {
	one, _, err := readStat(pid)
	if err != nil || !children {
		return one, err
	}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return usage{}, err
	}
	parents := map[int]int{}
	each := map[int]usage{}
	for _, name := range names {
		p, _ := strconv.Atoi(filepath.Base(name))
		// A process that ended since is none of ours any more.
		if u, parent, err := readStat(p); err == nil {
			parents[p], each[p] = parent, u
		}
	}
	for p, u := range each {
		if descends(p, pid, parents) {
			one.cpu += u.cpu
			one.rssBytes += u.rssBytes
		}
	}
	return one, nil
}

func descends(p, ancestor int, parents map[int]int) bool {
	for p = parents[p]; p > 1; p = parents[p] {
		if p == ancestor {
			return true
		}
	}
	return false
}

// readStat reads one /proc/PID/stat. The second field is the command in parentheses, which may
// hold blanks; what follows the last parenthesis is numbers: state, ppid (4), utime (14),
// stime (15), rss in pages (24), counted as in proc(5).
func readStat(pid int) (u usage, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, 0, fmt.Errorf("read usage of process %d: %w", pid, err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	number := func(field int) int64 {
		if field-3 >= len(fields) {
			return 0
		}
		n, _ := strconv.ParseInt(fields[field-3], 10, 64)
		return n
	}
	return usage{
		cpu:      time.Duration(number(14)+number(15)) * clockTick,
		rssBytes: number(24) * int64(os.Getpagesize()),
	}, int(number(4)), nil
}
