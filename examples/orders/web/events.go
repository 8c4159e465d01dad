package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/duepost/duepost/examples/orders/shop"
)

const (
	// mostOrders is how many orders the page shows.
	mostOrders = 50
	// calm is the least time between two events, however much happens.
	calm = 100 * time.Millisecond
	// lookAgain is how often the database is read though nothing happened in this process:
	// others work on the same database.
	lookAgain = time.Second
)

// events sends the overview now and whenever it has changed. Writing or reading that goes wrong ends
// the stream; the browser comes again.
func (v *server) events(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	var last shop.Overview
	for first := true; ; first = false {
		changed := v.shop.Changed()
		o, err := v.shop.Overview(r.Context(), mostOrders)
		if err != nil {
			v.log.Info("stream of events ended", "err", err)
			return
		}
		if first || !sameButTime(o, last) {
			if err := send(w, o); err != nil {
				v.log.Debug("stream of events ended", "err", err)
				return
			}
			last = o
		}
		if !pause(ctx, r.Context(), changed) {
			return
		}
	}
}

// sameButTime reports whether two overviews show the same.
func sameButTime(a, b shop.Overview) bool {
	return slices.Equal(a.Items, b.Items) && slices.Equal(a.Orders, b.Orders) &&
		a.Broker == b.Broker && a.Unsent == b.Unsent
}

// send writes one event.
func send(w http.ResponseWriter, o shop.Overview) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// pause waits a moment and then for a change, not for long, and reports whether anybody listens still.
func pause(server, client context.Context, changed <-chan struct{}) bool {
	for _, wait := range []struct {
		end  <-chan struct{}
		most time.Duration
	}{{nil, calm}, {changed, lookAgain}} {
		select {
		case <-wait.end:
		case <-time.After(wait.most):
		case <-server.Done():
			return false
		case <-client.Done():
			return false
		}
	}
	return true
}
