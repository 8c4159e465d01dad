package store

import (
	"context"
	"errors"
)

// Store is one open data directory. All methods may be called concurrently.
type Store struct{}

var errTodo = errors.New("not yet")

// Open locks dir, replays the log and returns the store.
func Open(fs FS, dir string, o Options) (*Store, error) { return nil, errTodo }

// Recovered returns what Open found, once; later calls return nil.
func (s *Store) Recovered() *Recovery { return nil }

// Append logs one durable ready message and returns where it is. holds is how
// many queue entries, durable or not, refer to it. May block while the disk is
// slower than the publishers.
func (s *Store) Append(m *Message, targets []Target, holds int) (Ref, LSN, error) {
	return Ref{}, 0, errTodo
}

// AppendTransient keeps a message that need not survive. Nothing is logged.
func (s *Store) AppendTransient(m *Message, holds int) (Ref, error) { return Ref{}, errTodo }

// AppendDelayed logs a delayed message and makes it pending.
func (s *Store) AppendDelayed(m *Message, due int64) (Key, LSN, error) { return Key{}, 0, errTodo }

// Read returns the record at ref. It is a view of a resident buffer, or is read
// with a single call into buf (grown if it is too small: Record.Grown...).
func (s *Store) Read(ref Ref, buf []byte) (Record, error) { return Record{}, errTodo }

// Settle logs that positions of a durable queue are acknowledged, and drops one
// hold of each ref (refs[i] belongs to positions[i]). It does not fail: after a
// stop it does nothing, and the messages come back after the restart.
func (s *Store) Settle(q uint32, positions []uint64, refs []Ref) {}

// Drop takes one hold from a record without logging anything: for transient
// messages, for entries of non-durable queues, and for every entry that a
// deleted queue still held.
func (s *Store) Drop(ref Ref) {}

// Commit logs the batch as one atomic frame. b.Refs and b.Keys are valid on
// return; it is not yet durable. On error nothing of it was applied.
func (s *Store) Commit(b *Batch) (LSN, error) { return 0, errTodo }

// Durable returns the highest durable LSN.
func (s *Store) Durable() LSN { return 0 }

// Notify has w told, once, when lsn is durable.
func (s *Store) Notify(lsn LSN, w Waiter) {}

// Wait blocks until lsn is durable, the store stopped, or ctx ended.
func (s *Store) Wait(ctx context.Context, lsn LSN) error { return errTodo }

// NextDue returns the due time of the earliest entry that waits.
func (s *Store) NextDue() (int64, bool) { return 0, false }

// PopDue appends to dst up to max entries due at or before now in ascending
// (due, seq). They are in flight until a committed batch has a Move, Retry or
// Discard for them; after a crash they are pending again.
func (s *Store) PopDue(now int64, max int, dst []Due) []Due { return dst }

// Cancel takes a waiting entry out. Against PopDue exactly one of the two wins.
func (s *Store) Cancel(key Key) (Outcome, LSN, error) { return 0, 0, errTodo }

// Pending returns the counters of one exchange incarnation.
func (s *Store) Pending(exchangeID uint32) Pending { return Pending{} }

// PendingTotal returns the counters over all exchanges.
func (s *Store) PendingTotal() Pending { return Pending{} }

// SetOwner names who answers for the queues. Cleaning begins then.
func (s *Store) SetOwner(o Owner) {}

// Err returns the fail-stop error, or nil.
func (s *Store) Err() error { return nil }

// Stats returns counters.
func (s *Store) Stats() Stats { return Stats{} }

// Close makes everything durable and releases the directory.
func (s *Store) Close() error { return errTodo }

// Abandon stops as kill -9 would: what is not durable yet is not written.
func (s *Store) Abandon() {}

// Stats are counters and gauges of the store.
type Stats struct {
	Appended       uint64 // records
	AppendedBytes  uint64
	Commits        uint64 // group commits
	WrittenBytes   uint64 // to the log, without pre-zeroing
	LogBytes       int64  // size of the log's segments in use
	LiveBytes      int64  // estimate of what in them is still needed
	Segments       int
	Spares         int
	Copied         uint64 // records the cleaner moved
	TransientBytes int64  // in memory
	ScratchBytes   int64  // in scratch files
	LostSettles    uint64 // acknowledgements not logged because even the reserve was used up
	Full           bool
	Damages        int
}
