package duepost

import (
	"context"
	"time"
)

// maxOvertime is how long after its time a handler's context may end.
const maxOvertime = time.Second

// handlerContexts lends contexts that end after a timeout to the handlers of one worker. A new
// context costs more than all else that the client does for a message, so that one is lent again
// and again for a short while; each handler has at least the timeout.
type handlerContexts struct {
	parent   context.Context
	timeout  time.Duration // 0 or less: parent is lent
	overtime time.Duration

	ctx    context.Context // nil before the first
	cancel context.CancelFunc
	renew  time.Time // from when on ctx leaves less than the timeout
}

func newHandlerContexts(parent context.Context, timeout time.Duration) *handlerContexts {
	return &handlerContexts{parent: parent, timeout: timeout, overtime: min(timeout/10, maxOvertime)}
}

// next is the context for a handler that starts now.
func (h *handlerContexts) next() context.Context {
	if h.timeout <= 0 {
		return h.parent
	}
	now := time.Now()
	if h.ctx == nil || now.After(h.renew) {
		h.close()
		h.renew = now.Add(h.overtime)
		h.ctx, h.cancel = context.WithDeadline(h.parent, h.renew.Add(h.timeout))
	}
	return h.ctx
}

// close ends what was lent last.
func (h *handlerContexts) close() {
	if h.cancel != nil {
		h.cancel()
	}
}
