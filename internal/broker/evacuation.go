package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/duepost/duepost/internal/store"
)

// evacuation makes due at once what waits in delayed exchanges that were deleted and have a
// dead-letter exchange. The engine then releases it as it does everything that is due.
//
// Role: one goroutine (run). It sleeps until an exchange is on its list.
type evacuation struct {
	broker *Broker
	wake   chan struct{} // holds one signal: there is something on the list
	quit   chan struct{}
	done   chan struct{}

	mu   sync.Mutex // guards list; a leaf lock
	list []*Exchange
}

// evacuationPage is how many entries are looked up at once, and evacuationRetry how long it rests
// when the store refuses.
const (
	evacuationPage  = 1024
	evacuationRetry = time.Second
)

func newEvacuation(b *Broker) *evacuation {
	return &evacuation{
		broker: b,
		wake:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
	}
}

// add puts what remains of an exchange on the list. It does not block.
func (e *evacuation) add(x *Exchange) {
	e.mu.Lock()
	e.list = append(e.list, x)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // it has a signal waiting
	}
}

func (e *evacuation) start() { go e.run() }

// stop ends the goroutine. What is left is done after the next start.
func (e *evacuation) stop() {
	close(e.quit)
	<-e.done
}

// run waits; evacuate works.
func (e *evacuation) run() {
	defer close(e.done)
	for {
		select {
		case <-e.quit:
			return
		case <-e.wake:
		}
		for x := e.take(); x != nil; x = e.take() {
			if !e.evacuate(x) {
				return
			}
		}
	}
}

func (e *evacuation) take() *Exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.list) == 0 {
		return nil
	}
	x := e.list[0]
	e.list = e.list[1:]
	return x
}

// evacuate makes all due that waits in an exchange. It reports false if it was told to end, or
// will never succeed.
func (e *evacuation) evacuate(x *Exchange) bool {
	b := e.broker
	var after store.Key
	for {
		n, err := e.evacuatePage(x, &after)
		switch {
		case err == nil && n == 0:
			return true
		case err == nil:
		case b.store.Err() != nil:
			return false
		default:
			b.log.Warn("delayed messages of a deleted exchange wait on", "vhost", x.vhost.name,
				"exchange", x.name, "err", err)
			select {
			case <-e.quit:
				return false
			case <-time.After(evacuationRetry):
			}
		}
		select {
		case <-e.quit:
			return false
		default:
		}
	}
}

// evacuatePage makes the next entries behind a key due and returns how many they were. Each is
// replaced by itself, due now: against its release exactly one of the two wins.
func (e *evacuation) evacuatePage(x *Exchange, after *store.Key) (int, error) {
	s, now := e.broker.store, e.broker.nowMillis()
	page, err := s.List(store.ListOptions{
		After: *after, From: now + 1, Exchanges: []uint32{x.id, x.id | historyBit}, Limit: evacuationPage,
	}, nil)
	if err != nil {
		return 0, fmt.Errorf("list delayed messages: %w", err)
	}
	for i := range page {
		rec, err := s.Get(page[i].Key)
		switch {
		case errors.Is(err, store.ErrNotPending), store.IsCorruption(err):
			// Released, or dropped with its virtual host; what is damaged is told at its release.
		case err != nil:
			return 0, fmt.Errorf("read delayed message: %w", err)
		default:
			m := rec.Message
			m.ExchangeID, m.KeyHash = page[i].ExchangeID, 0
			if _, _, _, err := s.Replace(page[i].Key, &m, now); err != nil {
				return 0, fmt.Errorf("make delayed message due: %w", err)
			}
		}
		*after = page[i].Key
	}
	e.broker.engine.Expect(now)
	return len(page), nil
}
