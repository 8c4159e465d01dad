package broker

import "sync"

// worker runs what no client's goroutine is there to run: the dispatch of queues whose alarm
// went off, and of those whose dispatcher has done its share.
//
// Role: one goroutine (run). It sleeps until something is on its list.
type worker struct {
	wake chan struct{} // holds one signal: there is something on the list
	quit chan struct{}
	done chan struct{}

	mu   sync.Mutex // guards list; a leaf lock, taken under a queue's
	list []*Queue   // each once: their dispatching is true and stands for this list
}

func newWorker() *worker {
	return &worker{
		wake: make(chan struct{}, 1),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
}

// add puts a queue on the list. The caller has set q.dispatching. It does not block.
func (w *worker) add(q *Queue) {
	w.mu.Lock()
	w.list = append(w.list, q)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it has a signal waiting
	}
}

func (w *worker) start() { go w.run() }

// stop ends the goroutine and waits for the queue it is at.
func (w *worker) stop() {
	close(w.quit)
	<-w.done
}

// run waits; next works.
func (w *worker) run() {
	defer close(w.done)
	for {
		select {
		case <-w.quit:
			return
		case <-w.wake:
		}
		for w.next() {
			select {
			case <-w.quit:
				return
			default:
			}
		}
	}
}

// next runs the queue that has been on the list longest, and reports whether there was one.
func (w *worker) next() bool {
	w.mu.Lock()
	if len(w.list) == 0 {
		w.mu.Unlock()
		return false
	}
	q := w.list[0]
	w.list[0] = nil
	w.list = w.list[1:]
	w.mu.Unlock()
	q.resume()
	if q.hasExpired(q.broker.nowMillis()) {
		q.broker.logIfFailed("delete expired queue", q.vhost.deleteExpiredQueue(q))
	}
	return true
}
