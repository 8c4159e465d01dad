package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeBlocker notes what it is told.
type fakeBlocker struct{ told chan string }

func (b fakeBlocker) Block(reason string) { b.told <- reason }
func (b fakeBlocker) Unblock()            { b.told <- "go on" }

func TestSpaceWatchTellsChangesOnly(t *testing.T) {
	t.Parallel()
	w := &spaceWatch{changed: make(chan struct{}, 1)}
	b := fakeBlocker{make(chan string)}
	ended := make(chan struct{})
	w.set(false) // before anybody watches, and nothing new
	go func() { w.watch(b); close(ended) }()
	var told []string
	for _, full := range []bool{true, false, true} {
		w.set(full)
		w.set(full)
		told = append(told, <-b.told)
	}
	w.stop()
	<-ended
	if diff := cmp.Diff([]string{"low on disk", "go on", "low on disk"}, told); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
