package once

import (
	"context"
	"crypto/rand"
	"sync"
	"time"
)

// NewMemory returns a store that forgets everything when the process ends.
func NewMemory(o Options) (Store[Lease], error) {
	return NewLeased(NewMemoryLeases(), o)
}

// NewMemoryLeases returns what is behind [NewMemory]. Stores over the same one, made by [NewLeased],
// share their records, and must keep them equally long.
func NewMemoryLeases() Leases { return &memory{records: map[string]*record{}} }

// memory keeps leases and records in a map.
type memory struct {
	mu sync.Mutex
	// Guarded by mu. kept has the keys that are done, in the order in which they may be
	// forgotten: one store keeps all equally long.
	records map[string]*record
	kept    []string
	fence   int64 // one for all keys
}

type record struct {
	holder string
	until  time.Time // end of the lease, or of being kept if it is done
	done   bool
}

// Claim is as Leases says.
func (m *memory) Claim(_ context.Context, key string, lease time.Duration) (Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.forgetLocked(now)
	r := m.records[key]
	if r == nil {
		r = &record{}
		m.records[key] = r
	}
	switch {
	case r.done:
		return Claim{Done: true}, nil
	case r.until.After(now):
		return Claim{Busy: r.until.Sub(now)}, nil
	}
	m.fence++
	r.holder, r.until = rand.Text(), now.Add(lease)
	return Claim{Lease: Lease{Key: key, Fence: m.fence, Holder: r.holder}}, nil
}

// forgetLocked takes out what was kept long enough.
func (m *memory) forgetLocked(now time.Time) {
	n := 0
	for n < len(m.kept) && !m.records[m.kept[n]].until.After(now) {
		delete(m.records, m.kept[n])
		n++
	}
	m.kept = m.kept[n:]
}

// Renew is as Leases says.
func (m *memory) Renew(_ context.Context, l Lease, lease time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.heldLocked(l)
	if r != nil {
		r.until = time.Now().Add(lease)
	}
	return r != nil, nil
}

// Finish is as Leases says.
func (m *memory) Finish(_ context.Context, l Lease, keep time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.heldLocked(l)
	if r != nil {
		r.done, r.until = true, time.Now().Add(keep)
		m.kept = append(m.kept, l.Key)
	}
	return r != nil, nil
}

// Release is as Leases says. The record goes, too: what failed and never comes again must not
// stay for ever.
func (m *memory) Release(_ context.Context, l Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heldLocked(l) != nil {
		delete(m.records, l.Key)
	}
	return nil
}

// heldLocked is the record of l if no later lease was granted, else nil.
func (m *memory) heldLocked(l Lease) *record {
	if r := m.records[l.Key]; r != nil && r.holder == l.Holder && !r.done {
		return r
	}
	return nil
}
