package duepost

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestHandlerContextsLeaveTheTimeoutAndLittleMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandlerContexts(t.Context(), time.Minute)
		began := time.Now()
		last := h.next()
		for time.Since(began) < 5*time.Minute {
			now := h.next()
			deadline, _ := now.Deadline()
			if left := time.Until(deadline); left < time.Minute || left > time.Minute+maxOvertime || now.Err() != nil {
				t.Fatalf("after %v: context has %v left, %v; want a minute, and at most %v more",
					time.Since(began), left, now.Err(), maxOvertime)
			}
			if now != last && last.Err() == nil {
				t.Fatalf("after %v: the context before was not ended", time.Since(began))
			}
			last = now
			time.Sleep(317 * time.Millisecond) // a handler
		}
		<-last.Done() // a handler that takes too long
		if h.next().Err() != nil {
			t.Error("the next handler has a context that has ended")
		}
		h.close()
		if none := newHandlerContexts(context.Background(), -1).next(); none != context.Background() {
			t.Errorf("without a timeout: got %v", none)
		}
	})
}
