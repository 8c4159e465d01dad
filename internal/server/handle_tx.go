package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// transaction is what a channel in tx mode gathers until commit: publishes, in
// the broker's hands, and settles, which stay in the channel's. [amqp tx]
type transaction struct {
	tx      *broker.Tx
	settles []txSettle
}

type txSettle struct {
	unacked
	how outcome
}

// publish adds a publish, which the broker copies.
func (t *transaction) publish(m *broker.Message) error { return t.tx.Publish(m) }

// settle adds settles, taken out of the window.
func (t *transaction) settle(taken []unacked, how outcome) {
	for _, u := range taken {
		t.settles = append(t.settles, txSettle{u, how})
	}
}

// handleTxSelect puts the channel into tx mode for good.
func (ch *channel) handleTxSelect() error {
	if ch.isConfirming.Load() {
		return amqp.Errorf(amqp.PreconditionFailed, "cannot switch from confirm to tx mode")
	}
	if ch.tx == nil {
		ch.tx = &transaction{tx: ch.publisher.NewTx()}
		ch.isTransactional.Store(true)
	}
	return ch.reply(&wire.TxSelectOk{})
}

// handleTxCommit makes what was gathered happen, all of it or nothing, and
// answers once it is durable. Unroutable messages come back before that.
func (ch *channel) handleTxCommit() error {
	t := ch.tx
	if t == nil {
		return amqp.Errorf(amqp.PreconditionFailed, "channel is not transactional")
	}
	t.passSettles(ch)
	returned, err := t.tx.Commit()
	if err != nil {
		return err // ends the channel, which rolls back
	}
	for i := range returned {
		r := &returned[i]
		ch.returnMessage(returnText(r.NotPending), r.ExchangeAndKey, r.Props, r.Body)
	}
	err = ch.reply(&wire.TxCommitOk{})
	t.forget(ch)
	return err
}

// handleTxRollback forgets what was gathered: publishes never happened, and the
// deliveries wait for their acks again.
func (ch *channel) handleTxRollback() error {
	if ch.tx == nil {
		return amqp.Errorf(amqp.PreconditionFailed, "channel is not transactional")
	}
	ch.tx.rollback(ch)
	return ch.reply(&wire.TxRollbackOk{})
}

// passSettles hands the settles to the broker's transaction, in runs of one source
// and outcome.
func (t *transaction) passSettles(ch *channel) {
	var positions []uint64
	for i, s := range t.settles {
		positions = append(positions, s.pos)
		if i+1 < len(t.settles) && t.settles[i+1].source == s.source && t.settles[i+1].how == s.how {
			continue
		}
		queue := ch.sourceOf(s.unacked).queue
		switch s.how {
		case acked:
			t.tx.Ack(queue, positions)
		case rejected:
			t.tx.Reject(queue, positions)
		case requeued:
			t.tx.Requeue(queue, positions)
		}
		positions = positions[:0]
	}
}

// forget accounts for the settles of a transaction that was committed and gives
// the credit back.
func (t *transaction) forget(ch *channel) {
	ch.mu.Lock()
	consumers := make([]*consumer, 0, len(t.settles))
	for _, s := range t.settles {
		ch.c.tally.count(s.how, 1)
		if k := ch.takeFrom(s.unacked).consumer; k != nil {
			consumers = append(consumers, k)
		}
	}
	ch.mu.Unlock()
	t.settles = nil
	for _, k := range consumers {
		k.giveBack(1)
	}
	ch.wakeConsumers()
}

// rollback forgets the publishes and puts the settled deliveries back into the
// window, to wait for their acks again.
func (t *transaction) rollback(ch *channel) {
	t.tx.Rollback()
	ch.mu.Lock()
	defer ch.mu.Unlock()
	back := make([]unacked, len(t.settles))
	for i, s := range t.settles {
		back[i] = s.unacked
	}
	ch.window.restore(back)
	t.settles = nil
}
