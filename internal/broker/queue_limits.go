package broker

import "github.com/duepost/duepost/internal/store"

// anyFull reports whether one of the queues refuses messages now [rmq reject-publish].
func anyFull(queues []*Queue) bool {
	for _, q := range queues {
		if q.isFull() {
			return true
		}
	}
	return false
}

// withoutFull appends to open those of the queues that take the message.
// Those that dead-letter what they refuse do so here. [rmq reject-publish-dlx]
func withoutFull(queues, open []*Queue, m *store.Message) []*Queue {
	for _, q := range queues {
		if !q.isFull() {
			open = append(open, q)
			continue
		}
		if q.settings.Load().overflow == rejectPublishDLX {
			q.deadLetterRefused(m)
		}
	}
	return open
}
