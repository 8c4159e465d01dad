package demo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// order is one order of the story. Times are since the start of the story.
type order struct {
	id       int
	placedAt time.Duration
	delay    time.Duration // how long the customer may take to pay
	paidAt   time.Duration // 0 if never
	quiet    bool          // counted, not shown
}

// step is one thing that happens at its time. Exactly one of the fields is set.
type step struct {
	at    time.Duration
	place []*order // one that is shown, or some quiet ones
	pay   *order
	crash bool
}

// The story in seconds. Delays are mixed, the longest comes first; orders 11 and 12 are placed
// after the crash, the others before it.
const (
	crashAt     = 5000 * time.Millisecond
	firstAt     = 100 * time.Millisecond
	everyAt     = 400 * time.Millisecond
	quietUntil  = 4 * time.Second
	quietOrders = 1000
	quietBatch  = 25
	longest     = 10 * time.Second
	shortest    = time.Second
)

// shownOrders are the orders that are told one by one.
func shownOrders() []*order {
	delays := []time.Duration{10, 2, 4, 1, 8, 3, 6, 9, 1, 5, 2, 8} // seconds
	orders := make([]*order, len(delays))
	for i, d := range delays {
		at := firstAt + time.Duration(i)*everyAt
		if i >= 10 {
			at += crashAt - 10*everyAt + 2*everyAt
		}
		orders[i] = &order{id: i + 1, placedAt: at, delay: d * time.Second}
	}
	// Every third is paid half-way through its time.
	for i := 2; i < len(orders); i += 3 {
		orders[i].paidAt = orders[i].placedAt + orders[i].delay/2
	}
	return orders
}

// story is all orders and all that happens, in order of time, at the given pace: 1 is the real
// one, 0.2 five times as fast.
func story(pace float64, quiet int) (orders []*order, steps []step) {
	orders = shownOrders()
	random := rand.New(rand.NewPCG(1, 2))
	for range quiet {
		delay := shortest + time.Duration(random.Int64N(int64(longest-shortest)))
		orders = append(orders, &order{id: len(orders) + 1, delay: delay, quiet: true})
	}
	paced := func(d time.Duration) time.Duration { return time.Duration(float64(d) * pace) }
	for _, o := range orders {
		o.placedAt, o.paidAt = paced(o.placedAt), paced(o.paidAt)
		o.delay = paced(o.delay).Truncate(time.Millisecond)
	}
	steps = append(steps, step{at: paced(crashAt), crash: true})
	shown, rest := orders[:len(orders)-quiet], orders[len(orders)-quiet:]
	for _, o := range shown {
		steps = append(steps, step{at: o.placedAt, place: []*order{o}})
		if o.paidAt > 0 {
			steps = append(steps, step{at: o.paidAt, pay: o})
		}
	}
	batches := slices.Collect(slices.Chunk(rest, quietBatch))
	for i, batch := range batches {
		at := firstAt + time.Duration(i)*(quietUntil-firstAt)/time.Duration(len(batches))
		steps = append(steps, step{at: paced(at), place: batch})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return orders, steps
}
