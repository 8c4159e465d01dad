package store

import (
	"runtime"
	"sync"
	"unsafe"
)

// buffers reuses the images of segments. A view of an image may be held by
// anyone for any time, so an image is free only when the garbage collector says
// that nobody can reach it: a finalizer takes it back. Fresh memory costs about
// as much in page faults as everything else an append does.
type buffers struct {
	size int64

	mu   sync.Mutex
	free [][]byte // guarded by mu
}

// keepFree is how many unused images are kept; the rest goes back to the heap.
const keepFree = 1

// get returns a buffer of n bytes with arbitrary content.
func (p *buffers) get(n int64) []byte {
	if n == p.size {
		p.mu.Lock()
		defer p.mu.Unlock()
		if k := len(p.free); k > 0 {
			b := p.free[k-1]
			p.free[k-1] = nil
			p.free = p.free[:k-1]
			p.watch(b)
			return b
		}
	}
	b := make([]byte, n)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0 // the page fault happens here, not under the log lock
	}
	if n == p.size {
		p.watch(b)
	}
	return b
}

func (p *buffers) watch(b []byte) {
	if !reuseBuffers {
		return
	}
	runtime.SetFinalizer(&b[0], func(first *byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.free) < keepFree {
			p.free = append(p.free, unsafe.Slice(first, p.size))
		}
	})
}
