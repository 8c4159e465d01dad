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
		ch.tx = &transaction{tx: ch.c.session.NewTx()}
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
	passed := t.pass(ch)
	returned, err := t.tx.Commit()
	if err != nil {
		return err
	}
	for i := range returned {
		r := &returned[i]
		ch.returnMessage(r.ExchangeAndKey, r.Props, r.Body)
	}
	err = ch.reply(&wire.TxCommitOk{})
	for _, s := range passed {
		_ = s
	}
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

// pass hands the settles to the broker's transaction, queue by queue.
func (t *transaction) pass(ch *channel) (passed []*source) {
	return nil
}

// rollback puts the settled deliveries back into the window.
func (t *transaction) rollback(ch *channel) {
	t.tx.Rollback()
}
