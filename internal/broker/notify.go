package broker

import "github.com/duepost/duepost/internal/store"

// Notify has w told, once, when what a [Result] named is durable. It may call w before it
// returns.
func (b *Broker) Notify(lsn store.LSN, w store.Waiter) { b.store.Notify(lsn, w) }
