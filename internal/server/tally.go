package server

import "sync/atomic"

// tally counts what went through a connection, or through all that are gone.
type tally struct {
	published atomic.Uint64 // complete publishes received
	confirmed atomic.Uint64 // publishes answered by basic.ack
	nacked    atomic.Uint64 // publishes answered by basic.nack
	returned  atomic.Uint64 // publishes sent back by basic.return
	delivered atomic.Uint64 // messages sent to consumers
	got       atomic.Uint64 // messages sent in answer to basic.get
	acked     atomic.Uint64
	rejected  atomic.Uint64
	requeued  atomic.Uint64
	channels  atomic.Uint64 // channels opened
	bytesIn   atomic.Uint64
	bytesOut  atomic.Uint64
}

// add adds another tally, which nobody changes any more.
func (t *tally) add(o *tally) {
	t.published.Add(o.published.Load())
	t.confirmed.Add(o.confirmed.Load())
	t.nacked.Add(o.nacked.Load())
	t.returned.Add(o.returned.Load())
	t.delivered.Add(o.delivered.Load())
	t.got.Add(o.got.Load())
	t.acked.Add(o.acked.Load())
	t.rejected.Add(o.rejected.Load())
	t.requeued.Add(o.requeued.Load())
	t.channels.Add(o.channels.Load())
	t.bytesIn.Add(o.bytesIn.Load())
	t.bytesOut.Add(o.bytesOut.Load())
}

// count counts settled deliveries.
func (t *tally) count(how outcome, n int) {
	switch how {
	case acked:
		t.acked.Add(uint64(n))
	case rejected:
		t.rejected.Add(uint64(n))
	case requeued, returned:
		t.requeued.Add(uint64(n))
	}
}
