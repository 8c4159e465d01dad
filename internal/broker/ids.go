package broker

import (
	"sync"

	"github.com/duepost/duepost/internal/store"
)

// ids hands out the numbers by which the store knows queues and delayed exchanges. They are
// even; a number is never used twice, also not after a restart: the store knows the end of the
// block that is being handed out, before the first of it is.
type ids struct {
	store *store.Store

	mu   sync.Mutex // guards all below; taken under a virtual host's lock
	next uint32
	end  uint32 // what is stored
}

// idBlock is how many numbers are reserved at once.
const idBlock = 1024

// historyBit marks, in the exchange id of a stored message, that its x-death headers were
// written here and not sent by its publisher: the history of dead-lettering goes on with them.
// A message that is not delayed has exchange id 0, so its mark is the id 1.
const historyBit = 1

// bccBit marks, in the exchange id of a message in a queue, that there is a BCC among its headers:
// dead letters go by it too, and consumers must not see it. It is no id, for those begin with idBlock.
const bccBit = 2

// take returns a new number. What is stored with it comes later in the log than the block's end.
func (i *ids) take() (uint32, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next == i.end {
		var b store.Batch
		b.Put(idDefinition, encodeID(i.end+idBlock))
		if _, err := i.store.Commit(&b); err != nil {
			return 0, err
		}
		i.end += idBlock
	}
	id := i.next
	i.next += 2
	return id, nil
}

// mark returns an LSN that is durable when everything is that was given to the store before.
func (i *ids) mark() (store.LSN, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var b store.Batch
	b.Put(idDefinition, encodeID(i.end))
	return i.store.Commit(&b)
}
