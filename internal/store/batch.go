package store

// Batch is an atomic group: after a crash all of it happened or nothing. The
// zero value is empty. It copies all it is given, encoded already, so Commit
// moves bytes once. Not for concurrent use.
type Batch struct {
	// Refs has, after Commit, one element per Append and Move, in call order.
	// A Move's may differ from the one it was given, if the cleaner was faster.
	Refs []Ref
	// Keys has, after Commit, one element per AppendDelayed and Retry, in call order.
	Keys []Key

	// Outcomes has, after Commit, one element per Cancel, in call order.
	Outcomes []Outcome

	buf     []byte // encoded, padded records; at Commit the move record is added
	ops     []op
	moves   []Move
	targets []Target // backing of moves[i].Targets
	cancels []cancel
	strict  bool // nothing happens unless all cancels succeed
	err     error
	ends    bool // has operations on entries in flight
	delayed bool // has other operations on delayed entries
	drops   bool // drops an exchange
	adds    bool // has operations that a full disk refuses
	shares  bool // has messages whose bodies are in body files already
	largest int  // bytes of the largest message
	view    messageView
}

// op is one operation; its record, if any, is buf[at:at+size].
type op struct {
	kind     kind
	at, size int
	index    int    // of Refs or Keys; -1 = none
	move     int    // of moves
	holds    int    // ready
	key      Key    // delayed, retry; settle: Seq is the position
	id       uint32 // exchange or queue
	hash     uint64 // delayed, retry: of the publisher's key, 0 = none
	body     *body  // ready, delayed: if that is large, while it is committed
	ref      Ref    // settle: the hold to drop; ready, delayed, retry: where it is
	seg      *segment
	name     string
}

// Move releases an in-flight entry into queues; the payload is not rewritten.
type Move struct {
	Key        Key
	Ref        Ref
	Arrived    int64 // unix ms: when it entered the queues; a queue's TTL counts from here
	TTL        int64 // ms, -1 = none
	Persistent bool
	Targets    []Target // durable queues
	Holds      int      // queue entries that refer to it, durable or not

	exchange uint32
	fromRun  bool
	dropped  bool // its exchange
	retried  bool
	body     *body   // if that is large
	large    BodyRef // of body
	from     *segment
}

// Append adds a ready message; see Store.Append.
func (b *Batch) Append(m *Message, targets []Target, holds int) {
	if rec := b.message(kindReady, m, &messageParts{kind: kindReady, targets: targets}); rec != nil {
		b.last().holds, b.last().index = holds, len(b.Refs)
		b.Refs = append(b.Refs, Ref{})
	}
}

// AppendDelayed adds a delayed message; see Store.AppendDelayed.
func (b *Batch) AppendDelayed(m *Message, due int64) {
	key := Key{Due: clampDue(due)}
	if rec := b.message(kindDelayed, m, &messageParts{kind: kindDelayed, key: key}); rec != nil {
		b.last().key, b.last().id, b.last().index = key, m.ExchangeID, len(b.Keys)
		b.last().hash = m.KeyHash
		b.Keys = append(b.Keys, Key{})
		b.delayed = true
	}
}

func clampDue(due int64) int64 { return min(max(due, 0), maxDue) }

func (b *Batch) message(k kind, m *Message, p *messageParts) []byte {
	size, err := messageSize(k, m, len(p.targets), false)
	if err != nil {
		b.err = err
		return nil
	}
	at := len(b.buf)
	b.buf = grow(b.buf, int(align(int64(size))))
	putMessage(b.buf[at:at+size], m, p)
	b.ops = append(b.ops, op{kind: k, at: at, size: size})
	b.adds = true
	b.shares = b.shares || m.Large.isSet()
	b.largest = max(b.largest, len(m.Body))
	return b.buf[at : at+size]
}

// grow extends b by n zero bytes.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(make([]byte, 0, 2*cap(b)+n), b...)
	}
	b = b[:len(b)+n]
	clear(b[len(b)-n:])
	return b
}

func (b *Batch) last() *op { return &b.ops[len(b.ops)-1] }

func (b *Batch) control(k kind, o op, fill func([]byte) []byte) {
	at := len(b.buf)
	b.buf = appendRecord(b.buf, k, 0, fill)
	o.kind, o.at, o.size = k, at, int(le.Uint32(b.buf[at:]))
	b.ops = append(b.ops, o)
}

// Settle adds the acknowledgement of one position and drops one hold of ref.
func (b *Batch) Settle(queue uint32, pos uint64, ref Ref) {
	b.control(kindSettle, op{ref: ref, id: queue, key: Key{Seq: pos}}, func(p []byte) []byte {
		return appendSettle(p, queue, []uint64{pos})
	})
}

// Move adds the release of an in-flight entry. Entries are ended, by Move, Retry
// or Discard, in the order in which they were popped.
func (b *Batch) Move(m *Move) {
	first := len(b.targets)
	b.targets = append(b.targets, m.Targets...)
	b.end(m, len(b.Refs))
	b.moves[len(b.moves)-1].Targets = b.targets[first:len(b.targets):len(b.targets)]
	b.Refs = append(b.Refs, Ref{})
}

// end adds the end of an entry in flight.
func (b *Batch) end(m *Move, index int) {
	b.ops = append(b.ops, op{kind: kindMove, index: index, move: len(b.moves)})
	b.moves = append(b.moves, *m)
	b.ends = true
}

// Retry puts an in-flight entry back, to fall due at newDue: its record is
// written again under the new key, as a copy.
func (b *Batch) Retry(key Key, ref Ref, newDue int64) {
	again := Key{Due: clampDue(newDue), Seq: key.Seq}
	b.end(&Move{Key: key, Ref: ref, TTL: -1, retried: true}, -1)
	b.ops = append(b.ops, op{kind: kindRetry, key: again, move: len(b.moves) - 1})
	b.Keys = append(b.Keys, again)
}

// Discard ends an in-flight entry: delivered nowhere.
func (b *Batch) Discard(key Key, ref Ref) { b.end(&Move{Key: key, Ref: ref, TTL: -1}, -1) }

// Put stores a definition.
func (b *Batch) Put(key string, value []byte) {
	b.control(kindPut, op{name: key}, func(p []byte) []byte {
		return append(appendString(p, key), value...)
	})
	b.adds = true
}

// Delete removes a definition.
func (b *Batch) Delete(key string) {
	b.control(kindDelete, op{name: key}, func(p []byte) []byte { return appendString(p, key) })
}

// DropQueue forgets all entries of a queue. Its id must never be used again.
// The caller drops (Store.Drop) every reference that the queue still held.
func (b *Batch) DropQueue(id uint32) {
	b.control(kindDropQueue, op{id: id}, func(p []byte) []byte { return le.AppendUint32(p, id) })
}

// Cancel takes out an entry that waits; see Store.Cancel. What else is in the batch
// happens in any case.
func (b *Batch) Cancel(key Key) { b.cancels = append(b.cancels, cancel{key: key}) }

// DropExchange forgets the waiting entries of an exchange incarnation, whose id
// must never be used again. They are subtracted from the counters at once.
// Entries in flight can still be moved; a Retry ends them.
func (b *Batch) DropExchange(id uint32) {
	b.control(kindDropExchange, op{id: id}, func(p []byte) []byte { return le.AppendUint32(p, id) })
	b.delayed, b.drops = true, true
}

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.ops) + len(b.cancels) }

// Reset empties the batch and keeps its memory, unless it is large.
func (b *Batch) Reset() {
	if cap(b.buf) > 1<<20 {
		b.buf = nil
	}
	clear(b.ops)
	clear(b.cancels)
	*b = Batch{
		Refs: b.Refs[:0], Keys: b.Keys[:0], buf: b.buf[:0], ops: b.ops[:0],
		Outcomes: b.Outcomes[:0], cancels: b.cancels[:0],
		moves: b.moves[:0], targets: b.targets[:0], view: messageView{Record: Record{Buf: b.view.Buf}},
	}
}
