package broker

import (
	"log/slog"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// A parking queue keeps messages that were due, or dead-lettered, and that nobody took. It is a
// queue without a name: nobody can consume from it or bind it. There is one per virtual host and
// reason, so that a parked message needs no record of its own to say why it is there.
const (
	reasonUnroutable = "unroutable"
	reasonDeadLetter = "dead-letter"
)

// parkingQueue returns the parking queue for a reason and makes it if there is none.
func (v *VHost) parkingQueue(reason string) (*Queue, error) {
	v.mu.RLock()
	q := v.parked[reason]
	v.mu.RUnlock()
	if q != nil {
		return q, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if q := v.parked[reason]; q != nil {
		return q, nil
	}
	if err := v.checkAliveLocked(); err != nil {
		return nil, err
	}
	id, err := v.broker.ids.take()
	if err != nil {
		return nil, err
	}
	var b store.Batch
	b.Put(parkDefinition(v.name, reason), encodeID(id))
	if _, err := v.broker.store.Commit(&b); err != nil {
		return nil, err
	}
	return v.addParkingLocked(reason, id), nil
}

func (v *VHost) addParkingLocked(reason string, id uint32) *Queue {
	q := newQueue(v, &QueueSpec{Durable: true})
	q.id = id
	v.parked[reason] = q
	v.broker.addQueue(q)
	return q
}

// Parked returns how many messages are parked, by reason.
func (v *VHost) Parked() map[string]int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	parked := make(map[string]int, len(v.parked))
	for reason, q := range v.parked {
		if n := q.Messages(); n > 0 {
			parked[reason] = n
		}
	}
	return parked
}

// ParkedTotal returns how many messages are parked in all virtual hosts.
func (b *Broker) ParkedTotal() (n int) {
	for _, v := range b.allVHosts() {
		for _, parked := range v.Parked() {
			n += parked
		}
	}
	return n
}

// parkingLogEvery is how often at most parking is logged: a missing binding may park thousands.
const parkingLogEvery = 10 * time.Second

// parkingLog tells the operator of due messages that nobody is bound for, first at once and then
// with how many there were since. It is used by the engine's goroutine only.
type parkingLog struct {
	quietUntil time.Time // by the monotonic clock
	untold     int
}

// note is told of one such message: what is done with it, where it came from, and its key.
func (l *parkingLog) note(log *slog.Logger, does string, x *Exchange, key []byte) {
	l.untold++
	now := time.Now()
	if now.Before(l.quietUntil) {
		return
	}
	log.Warn("no queue is bound for due messages: "+does, "vhost", x.vhost.name,
		"exchange", x.name, "key", string(key), "messages", l.untold)
	l.quietUntil, l.untold = now.Add(parkingLogEvery), 0
}
