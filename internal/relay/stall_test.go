package relay

import (
	"strings"
	"testing"
	"time"
)

// A place that does not answer while others do is held back, but for one message at a time; that nobody
// answers is a fault, unless RabbitMQ has said that it takes nothing.
func TestStalls(t *testing.T) {
	t.Parallel()
	s := &session{r: New(Config{})}
	fly := func(w *worker, key string, ago time.Duration) *item {
		it := &item{exchange: "x", key: key, to: release, sentAt: s.now() - millis(ago)}
		w.flying[it] = struct{}{}
		return it
	}
	w := &worker{s: s, flying: map[*item]struct{}{}, heard: s.now()}
	away := fly(w, "away", 2*stallAfter)
	fly(w, "served", stallAfter/2)
	if err := w.lookForStalls(); err != nil {
		t.Fatal(err)
	}
	if len(w.flying) != 1 || w.stuck != 1 {
		t.Errorf("%d count towards the window and %d do not, want one each", len(w.flying), w.stuck)
	}
	try, next, other := &item{exchange: "x", key: "away"}, &item{exchange: "x", key: "away"}, &item{exchange: "x", key: "served"}
	if w.isSetBack(try) || !w.isSetBack(next) || w.isSetBack(try) || w.isSetBack(other) {
		t.Error("want one to be tried, the next one set back, and others passed")
	}
	w.landed(away, s.now())
	if w.isSetBack(next) || w.stuck != 0 {
		t.Error("it has answered and is held back")
	}

	w = &worker{s: s, flying: map[*item]struct{}{}, heard: s.now() - millis(2*muteAfter)}
	fly(w, "mute", 2*muteAfter)
	s.blocked.Store(1)
	if err := w.lookForStalls(); err != nil {
		t.Errorf("RabbitMQ is short of memory: %v", err)
	}
	s.blocked.Store(0)
	if err := w.lookForStalls(); err != nil || len(w.flying) != 1 {
		t.Errorf("RabbitMQ may have its time to answer: %v, %d on their way", err, len(w.flying))
	}
	w = &worker{s: s, flying: map[*item]struct{}{}, heard: s.now() - millis(2*muteAfter)}
	fly(w, "mute", 2*muteAfter)
	if err := w.lookForStalls(); err == nil || !strings.Contains(err.Error(), "answered nothing") || w.stuck > 0 {
		t.Errorf("RabbitMQ answers nobody: %v, %d are taken for stuck", err, w.stuck)
	}
	if !w.isSetBack(&item{exchange: "x", key: "k", tries: mostTries}) {
		t.Error("what was tried often stays in memory")
	}
}
