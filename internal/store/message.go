package store

import "cmp"

// Ref says where a record is. The zero Ref is no record.
type Ref struct {
	File uint32 // segment id; the top bit marks memory segments
	Off  uint32 // in units of 8 bytes
	Len  uint32 // bytes of the record, without padding
}

// Key identifies a delayed entry and orders all of them. It is the entry's
// public id. Seq is never used twice; a retry keeps Seq and changes Due.
type Key struct {
	Due int64  `json:"due"` // unix ms
	Seq uint64 `json:"seq"`
}

// Less reports whether k comes before o.
func (k Key) Less(o Key) bool {
	return k.Due < o.Due || (k.Due == o.Due && k.Seq < o.Seq)
}

func (k Key) compare(o Key) int { return cmp.Or(cmp.Compare(k.Due, o.Due), cmp.Compare(k.Seq, o.Seq)) }

// LSN numbers the frames of the log, starting at 1. Zero is "nothing to wait for".
type LSN uint64

// Target is a message's place in a durable queue.
type Target struct {
	Queue uint32 `json:"queue"`
	Pos   uint64 `json:"pos"`
}

// Message is what to store. All slices are views and are copied during the call.
type Message struct {
	Exchange   []byte // name it was published to, at most 255 bytes
	RoutingKey []byte // at most 255 bytes
	Props      []byte // encoded content header properties
	Body       []byte
	Large      BodyRef // if set, where the body is; Body is not looked at
	ExchangeID uint32  // incarnation of the delayed exchange, 0 for ready messages
	Arrived    int64   // unix ms
	TTL        int64   // message expiration in ms, -1 = none
	KeyHash    uint64  // of delayed messages: what FindKey finds it by, 0 = by nothing
	Persistent bool
}

// BodyLen returns the length of the body, wherever it is.
func (m *Message) BodyLen() int {
	if m.Large.isSet() {
		return int(m.Large.Length)
	}
	return len(m.Body)
}

// Record is a message as read back. One with a large body has Large set besides Body,
// so a copy of it can be appended that shares the body. The slices are views: of a buffer that the
// garbage collector keeps alive as long as they are used, or of the buffer
// given to [Store.Read]. They must not be written to.
type Record struct {
	Message
	ExchangeAndKey []byte // exchange and routing key as two adjacent AMQP short strings
	Key            Key    // as published, zero for ready messages
	Buf            []byte // what Read read into, if it did; to be given to the next Read
}

// Due is a delayed entry that has fallen due.
type Due struct {
	Key        Key
	ExchangeID uint32
	Ref        Ref
}

// Pending counts delayed entries that wait or are in flight.
type Pending struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"` // of their records
}

// Outcome is the answer to [Store.Cancel].
type Outcome uint8

const (
	// NotFound means no such entry: never existed, cancelled before, released and
	// moved, re-timed under another key, or its exchange was dropped.
	NotFound Outcome = iota
	// Cancelled means the entry will never be popped. It is certain across a
	// crash once the LSN that came with it is durable.
	Cancelled
	// AlreadyDue means the entry was popped and is in flight.
	AlreadyDue
)

func (o Outcome) String() string {
	switch o {
	case Cancelled:
		return "cancelled"
	case AlreadyDue:
		return "already due"
	default:
		return "not found"
	}
}

// Waiter is told when what it waits for is on stable storage.
type Waiter interface {
	// Committed is called once per [Store.Notify], from the committer goroutine
	// or, if the LSN was durable already, from the caller of Notify. durable is
	// the highest durable LSN; err is set if the store has stopped and the LSN
	// will never be durable. It must not block and may call Notify, not Wait or
	// Close.
	Committed(durable LSN, err error)
}

// Owner answers for the queues; the cleaner asks it. Its methods are called
// from the cleaner goroutine without any lock of the store.
//
// A position that was handed to Append or Move counts as held from before that
// call until it is settled or dropped, also while it has not been pushed into
// the queue yet. If Relocate comes in that gap, the push that follows must keep
// the relocated reference. And it stays held until the call that ends it (Settle,
// or Commit with the group it is in) has returned: what the cleaner finds not
// held may be gone from the disk as soon as the log up to then is durable.
type Owner interface {
	// Holds reports whether the queue still needs the message at pos.
	Holds(queue uint32, pos uint64) bool
	// Relocate replaces the reference at pos by to if it is still from, and
	// reports whether the position is still held. The hold at from is still the
	// owner's: it drops that too, at once if nobody is about to name from, else
	// with what does. What is never dropped keeps space for some time, no more.
	Relocate(queue uint32, pos uint64, from, to Ref) (held bool)
}
