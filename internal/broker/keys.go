package broker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/store"
)

// A publisher may name what waits in a delayed exchange by a key of its own, in the
// header x-delay-key. Whatever waits under the key gives way to the next message with
// it, or to nothing if that says x-delay-cancel. Who publishes with one key to one
// exchange takes turns, from the look-up to the log, so the last one stands.

// keyHash is by what the store finds a key in an incarnation of an exchange.
func keyHash(exchange uint32, key []byte) uint64 {
	var b [4 + headers.MaxKey]byte
	binary.BigEndian.PutUint32(b[:], exchange)
	sum := sha256.Sum256(b[:4+copy(b[4:], key)])
	return max(1, binary.BigEndian.Uint64(sum[:])) // 0 is none
}

// turns are held, by hash, by who works with a key. The zero value is ready.
type turns struct {
	mu   sync.Mutex
	held map[uint64]chan struct{} // closed when it is given back
}

// take waits for the turn. Who takes several takes them in ascending order.
func (t *turns) take(hash uint64) {
	for {
		t.mu.Lock()
		c := t.held[hash]
		if c == nil {
			if t.held == nil {
				t.held = make(map[uint64]chan struct{})
			}
			t.held[hash] = make(chan struct{})
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		<-c
	}
}

func (t *turns) give(hash uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.held[hash])
	delete(t.held, hash)
}

// findKey returns what waits in an exchange under a key, normally one or none. It may
// read from the disk; meanwhile only who uses the same key waits.
func (p *Publisher) findKey(x *Exchange, hash uint64, key []byte, old []store.Key) ([]store.Key, error) {
	return p.broker.store.FindKey(x.id, hash, func(r *store.Record) bool {
		err := p.oldProps.Decode(r.Props)
		return err == nil && bytes.Equal(headers.KeyOf(p.oldProps.Headers), key)
	}, old)
}

// holdKeyed gives a message to the delay engine in place of what waits under
// its key, or takes that out.
func (p *Publisher) holdKeyed(x *Exchange, m *store.Message) (store.LSN, error) {
	b, d := p.broker, &p.route.delay
	hash := keyHash(x.id, d.Key)
	b.turns.take(hash)
	defer b.turns.give(hash)
	var err error
	if p.old, err = p.findKey(x, hash, d.Key, p.old[:0]); err != nil {
		return 0, err
	}
	if d.Cancel {
		n, lsn, err := b.engine.Replace(&p.swap, p.old, nil, 0)
		p.cancelled += n
		if lsn == 0 && err == nil {
			// Nothing is there, perhaps because of what is not durable yet.
			lsn = b.store.Appended()
		}
		return lsn, err
	}
	m.KeyHash = hash
	n, lsn, err := b.engine.Replace(&p.swap, p.old, m, p.dueOf())
	p.cancelled += n
	return lsn, err
}

// dueOf is when the message at hand is due.
func (p *Publisher) dueOf() int64 { return max(p.route.delay.Due, p.envelope.accepted) }
