package broker

// anyFull reports whether one of the queues refuses messages now [rmq reject-publish].
func anyFull(queues []*Queue) bool {
	for _, q := range queues {
		if q.isFull() {
			return true
		}
	}
	return false
}

// withoutFull returns the queues that take the message at hand.
// Those that dead-letter what they refuse do so here. [rmq reject-publish-dlx]
func (p *Publisher) withoutFull(queues []*Queue) (open []*Queue) {
	p.open = p.open[:0]
	for _, q := range queues {
		if !q.isFull() {
			p.open = append(p.open, q)
			continue
		}
		if q.settings.Load().overflow == rejectPublishDLX {
			q.deadLetterRefused(&p.record)
		}
	}
	return p.open
}
