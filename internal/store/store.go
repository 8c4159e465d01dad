package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Store is one open data directory. All methods may be called concurrently.
type Store struct {
	log     *log
	index   *index
	memory  *memory
	bodies  *bodies
	cleaner *cleaner

	lock      io.Closer
	recovered atomic.Pointer[Recovery]
	unread    *Scratch // of Recovery.Entries
	closed    atomic.Bool
	damages   atomic.Int64
}

// Recovered returns what Open found, once; later calls return nil.
func (s *Store) Recovered() *Recovery { return s.recovered.Swap(nil) }

// Durable returns the highest durable LSN.
func (s *Store) Durable() LSN { return s.log.Durable() }

// Appended returns the LSN of what was logged last.
func (s *Store) Appended() LSN {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.lastLocked()
}

// Notify has w told, once, when lsn is durable or the store has stopped.
func (s *Store) Notify(lsn LSN, w Waiter) { s.log.notify(lsn, w) }

// waitOnce turns a Waiter into a channel.
type waitOnce chan error

func (w waitOnce) Committed(_ LSN, err error) { w <- err }

// Wait blocks until lsn is durable, the store has stopped, or ctx ends.
func (s *Store) Wait(ctx context.Context, lsn LSN) error {
	w := make(waitOnce, 1)
	s.log.notify(lsn, w)
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
		s.log.forget(w)
		return ctx.Err()
	}
}

// SetOwner names who answers for the queues, and asks it for what recovery found: it must
// have taken that over. Cleaning begins then.
func (s *Store) SetOwner(o Owner) {
	s.bodies.askOwner(o)
	s.cleaner.setOwner(o)
}

// Err returns why the store has stopped confirming, or nil.
func (s *Store) Err() error {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.err, ErrClosed) {
		return nil
	}
	return l.err
}

// Close makes everything durable and releases the directory.
func (s *Store) Close() error {
	if !s.closed.CompareAndSwap(false, true) {
		return ErrClosed
	}
	s.stop()
	s.log.commit(nil) // appends are refused since stop, so this is the last
	err := s.Err()
	s.log.release()
	return errors.Join(err, s.release())
}

// Abandon stops as kill -9 would: what has not been written is not written.
// Waiters get ErrClosed.
func (s *Store) Abandon() {
	if s == nil || !s.closed.CompareAndSwap(false, true) {
		return
	}
	s.stop()
	s.log.release()
	s.release()
}

// stop ends all roles: the cleaner first, because it appends and waits, then
// the log's and the memory's.
func (s *Store) stop() {
	s.log.mu.Lock()
	s.log.failLocked(ErrClosed)
	s.log.mu.Unlock()
	s.index.stop(ErrClosed)
	s.cleaner.stop()
	s.bodies.stop()
	s.log.stop()
	s.memory.stop()
}

func (s *Store) release() error {
	s.memory.release()
	s.unread.Close()
	s.bodies.release()
	if err := s.lock.Close(); err != nil {
		return fmt.Errorf("unlock data directory: %w", err)
	}
	return nil
}

// Stats are counters and gauges of the store.
type Stats struct {
	Appended       uint64 // records
	AppendedBytes  uint64
	Commits        uint64 // group commits
	WrittenBytes   uint64 // to the log, without pre-zeroing
	LogBytes       int64  // size of the log's segments in use
	LiveBytes      int64  // estimate of what in them is still needed
	Segments       int
	Spares         int    // prepared files
	Flushed        uint64 // delayed records written to runs
	FlushedBytes   uint64 // to runs
	Merged         uint64 // delayed records written again by merges
	MergedBytes    uint64
	Runs           int
	RunBytes       int64 // size of the runs in use, without what was given back
	BodyFiles      int
	BodyBytes      int64  // of large messages on the disk, and room for more
	LiveBodyBytes  int64  // those that are needed
	Copied         uint64 // records the cleaner moved
	Cleaned        uint64 // segments it emptied
	TransientBytes int64  // transient messages in memory
	ScratchBytes   int64  // transient messages in scratch files
	LostSettles    uint64 // acknowledgements not logged because even the reserve was used up
	Full           bool   // appends are refused with ErrFull
	Damages        int    // found by Open, and since
	Pending        Pending
}

// Stats returns the current figures.
func (s *Store) Stats() Stats {
	l := s.log
	l.mu.Lock()
	st := l.stats
	st.Full, st.Segments, st.Spares = l.shortLocked(), len(l.order), len(l.spares)
	st.LogBytes, st.LiveBytes = l.sizesLocked()
	st.Runs = len(l.files)
	for _, r := range l.files {
		st.RunBytes += r.size - r.punched
	}
	l.mu.Unlock()
	st.Damages = int(s.damages.Load())
	st.Pending = s.PendingTotal()
	st.TransientBytes, st.ScratchBytes = s.memory.sizes()
	st.BodyFiles, st.BodyBytes, st.LiveBodyBytes = s.bodies.sizes()
	return st
}
