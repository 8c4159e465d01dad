package daemon

import "github.com/duepost/duepost/internal/httpapi"

// Health is the state of all parts together. It does not wait for anything but short locks.
func (d *Daemon) Health() httpapi.Health {
	h := *d.phase.Load()
	if h.Status != httpapi.Ready {
		return h
	}
	// Ready was set after the parts were, so they can be read here. The engine's error covers
	// the store's: either means that nothing more is confirmed or handed over.
	if err := d.engine.Err(); err != nil {
		h = httpapi.Health{Status: httpapi.Failed, Reason: err.Error()}
	}
	h.Totals = &httpapi.Totals{Pending: d.store.PendingTotal().Count, Parked: d.broker.ParkedTotal()}
	return h
}

func (d *Daemon) setPhase(s httpapi.Status, reason string) {
	d.phase.Store(&httpapi.Health{Status: s, Reason: reason})
}
