package demo

import (
	"slices"
	"testing"
	"time"
)

func TestStoryShowsHeadOfLineBlocking(t *testing.T) {
	t.Parallel()
	orders := shownOrders()
	if orders[0].delay != longest {
		t.Errorf("the first delay is %v, want the longest, %v", orders[0].delay, longest)
	}
	var before, after, paid int
	for _, o := range orders {
		if o.delay < shortest || o.delay > longest {
			t.Errorf("order %d: delay %v, want one from %v to %v", o.id, o.delay, shortest, longest)
		}
		if o.placedAt < crashAt {
			before++
		} else {
			after++
		}
		if o.paidAt > 0 {
			paid++
		}
	}
	if before == 0 || after == 0 || paid == 0 || paid == len(orders) {
		t.Errorf("%d orders before the crash, %d after it, %d of them paid: want some of each", before, after, paid)
	}
}

func TestStoryTakesAQuarterOfAMinute(t *testing.T) {
	t.Parallel()
	orders, steps := story(1, quietOrders)
	var end time.Duration
	for _, o := range orders {
		end = max(end, o.placedAt+o.delay)
	}
	if want := len(shownOrders()) + quietOrders; len(orders) != want {
		t.Errorf("%d orders, want %d", len(orders), want)
	}
	if end < 12*time.Second || end > 15*time.Second {
		t.Errorf("the last order is due after %v, want 12 to 15 s", end)
	}
	if !slices.IsSortedFunc(steps, func(a, b step) int { return int(a.at - b.at) }) {
		t.Error("steps are not in order of time")
	}
	fast, _ := story(0.1, quietOrders)
	if got, want := fast[0].delay, orders[0].delay/10; got != want {
		t.Errorf("at pace 0.1 the first delay is %v, want %v", got, want)
	}
}
