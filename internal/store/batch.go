package store

// Batch is an atomic group: after a crash all of it happened or nothing. The
// zero value is empty. It copies all it is given. Not for concurrent use.
type Batch struct {
	// Refs has, after Commit, one element per Append and Move, in call order.
	Refs []Ref
	// Keys has, after Commit, one element per AppendDelayed and Retry, in call order.
	Keys []Key
}

// Move releases an in-flight entry into queues; the payload is not rewritten.
type Move struct {
	Key        Key
	Ref        Ref
	Arrived    int64 // unix ms: when it entered the queues; a queue's TTL counts from here
	TTL        int64 // ms, -1 = none
	Persistent bool
	Targets    []Target
	Holds      int // queue entries that refer to it, durable or not; 0 with no Targets drops it
}

// Append adds a ready message; see Store.Append.
func (b *Batch) Append(m *Message, targets []Target, holds int) {}

// AppendDelayed adds a delayed message; see Store.AppendDelayed.
func (b *Batch) AppendDelayed(m *Message, due int64) {}

// Settle adds the acknowledgement of one position and drops one hold of ref.
func (b *Batch) Settle(queue uint32, pos uint64, ref Ref) {}

// Move adds the release of an in-flight entry.
func (b *Batch) Move(m *Move) {}

// Retry puts an in-flight entry back, to fall due at newDue.
func (b *Batch) Retry(key Key, ref Ref, newDue int64) {}

// Discard ends an in-flight entry: delivered nowhere.
func (b *Batch) Discard(key Key, ref Ref) {}

// Put stores a definition.
func (b *Batch) Put(key string, value []byte) {}

// Delete removes a definition.
func (b *Batch) Delete(key string) {}

// DropQueue forgets all entries of a queue. Its id must never be used again.
// The caller drops (Store.Drop) every reference that the queue still held.
func (b *Batch) DropQueue(id uint32) {}

// DropExchange forgets all pending entries of an exchange incarnation. They are
// subtracted from the counters at once; in-flight ones turn out unknown at Move.
func (b *Batch) DropExchange(id uint32) {}

// Len returns the number of operations.
func (b *Batch) Len() int { return 0 }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {}
