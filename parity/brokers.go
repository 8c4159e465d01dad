package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/duepost/duepost/internal/testbroker"
)

// broker is one that is asked.
type broker struct{ *testbroker.Broker }

// brokers are the RabbitMQs, each in a column of its own, and Duepost.
type brokers struct {
	theirs []*broker
	ours   *broker
}

// all are the brokers in the order of the columns.
func (b *brokers) all() []*broker { return append(b.theirs[:len(b.theirs):len(b.theirs)], b.ours) }

// start starts one of each version and Duepost, all at once, with everything that they write below
// dir. With an error none is left.
func start(ctx context.Context, installed []testbroker.RabbitMQ, program, dir string) (*brokers, error) {
	b := &brokers{theirs: make([]*broker, len(installed))}
	var starting sync.WaitGroup
	failed := make([]error, len(installed)+1)
	for i, r := range installed {
		starting.Go(func() {
			one, err := r.Start(ctx, testbroker.Options{Dir: filepath.Join(dir, r.Version), Management: true})
			b.theirs[i], failed[i] = &broker{one}, err
		})
	}
	one, err := testbroker.StartDuepost(ctx, program, testbroker.Options{Dir: filepath.Join(dir, "duepost"), Management: true})
	b.ours, failed[len(installed)] = &broker{one}, err
	starting.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

// stop stops those that were started.
func (b *brokers) stop() (err error) {
	for _, one := range b.all() {
		if one.Broker != nil {
			err = errors.Join(err, one.Stop())
		}
	}
	return err
}
