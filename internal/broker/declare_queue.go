package broker

import (
	"crypto/rand"
	"iter"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// QueueDeclare makes sure that there is such a queue. [amqp queue.declare]
func (s *Session) QueueDeclare(spec QueueSpec) (QueueInfo, error) {
	spec.Name = cleanName(spec.Name)
	if isReplyAddress([]byte(spec.Name)) || spec.Name == ReplyQueue {
		return s.declareReplyQueue(spec.Name)
	}
	if spec.Passive {
		q, err := s.queue(spec.Name)
		if err != nil {
			return QueueInfo{}, err
		}
		q.touch()
		return q.info(), nil
	}
	serverNamed := spec.Name == ""
	if serverNamed {
		spec.Name = "amq.gen-" + rand.Text() // nobody can guess it
	} else if s.vhost.queue(spec.Name) == nil {
		if err := checkNewName("queue", spec.Name); err != nil {
			return QueueInfo{}, err
		}
	}
	if err := s.checkQueue(s.rights.MayConfigure, spec.Name); err != nil {
		return QueueInfo{}, err
	}
	if s.vhost.queue(spec.Name) == nil {
		if err := s.checkOther(spec.Args, argDLX, spec.Name, s.checkQueue); err != nil {
			return QueueInfo{}, err
		}
	}
	spec.Args = s.vhost.withDefaultType(&spec)
	if serverNamed && spec.Args[argQueueType] == "quorum" {
		return QueueInfo{}, amqp.Errorf(amqp.PreconditionFailed,
			"Cannot declare a server-named queue for type rabbit_quorum_queue")
	}
	q, lsn, err := s.vhost.declareQueue(s, &spec)
	if err != nil {
		return QueueInfo{}, err
	}
	if err := s.broker.wait(lsn); err != nil {
		return QueueInfo{}, err
	}
	return q.info(), nil
}

// Queue returns the queue of that name if the session may take messages out of it.
func (s *Session) Queue(name string) (*Queue, error) {
	name = cleanName(name)
	if err := s.checkQueue(s.rights.MayRead, name); err != nil {
		return nil, err
	}
	return s.queue(name)
}

// queue returns the queue of that name if it is not another session's.
func (s *Session) queue(name string) (*Queue, error) {
	q := s.vhost.queue(name)
	if q == nil {
		return nil, queueNotFound(name, s.vhost.name)
	}
	return q, q.checkAccess(s)
}

// checkAccess refuses an exclusive queue to other sessions than its owner.
func (q *Queue) checkAccess(s *Session) error {
	if q.owner != nil && q.owner != s {
		return q.locked()
	}
	return nil
}

// declareQueue creates the queue or compares it with the one that is there.
func (v *VHost) declareQueue(s *Session, spec *QueueSpec) (*Queue, store.LSN, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if q := v.queues[spec.Name]; q != nil {
		if err := q.checkEquivalent(s, spec); err != nil {
			return nil, 0, err
		}
		q.touch()
		return q, 0, nil
	}
	if err := v.checkAliveLocked(); err != nil {
		return nil, 0, err
	}
	if s.closed {
		return nil, 0, amqp.Errorf(amqp.ConnectionForced, "the connection is closing")
	}
	if err := v.limits.checkQueues(v, spec.Name); err != nil {
		return nil, 0, err
	}
	if err := firstFault(spec.Faults(v.name)); err != nil {
		return nil, 0, err
	}
	q := newQueue(v, spec)
	if spec.Exclusive {
		q.owner = s
	}
	var b store.Batch
	if err := q.define(&b); err != nil {
		return nil, 0, err
	}
	lsn, err := v.broker.store.Commit(&b)
	if err != nil {
		return nil, 0, v.broker.waited(err)
	}
	v.addQueueLocked(q)
	if spec.Exclusive {
		s.exclusive[q] = struct{}{}
	}
	return q, lsn, nil
}

// Faults goes through what is wrong with the declaration of a new queue, save its name: each error
// with the argument that it is about, or "".
func (s *QueueSpec) Faults(vhost string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range queueArgumentFaults(s.Name, vhost, s.Args) {
			if !yield(name, err) {
				return
			}
		}
		if err := checkTypeOfQueue(s, vhost); err != nil && !yield("", err) {
			return
		}
		if _, err := encodeArguments(s.Args); err != nil {
			yield("", err)
		}
	}
}

// firstFault returns the first error, or nil.
func firstFault(faults iter.Seq2[string, error]) error {
	for _, err := range faults {
		return err
	}
	return nil
}

// newQueue makes an empty queue.
func newQueue(v *VHost, spec *QueueSpec) *Queue {
	q := &Queue{
		name:       spec.Name,
		broker:     v.broker,
		vhost:      v,
		durable:    spec.Durable && !spec.Exclusive,
		autoDelete: spec.AutoDelete,
		args:       spec.Args,
		logged:     spec.Durable && !spec.Exclusive,
		bindings:   make(map[bindingKey]*binding),
	}
	q.index.pager = v.broker.pager
	q.quorum = spec.Args[argQueueType] == "quorum"
	q.singleActive, _ = spec.Args[argSingleActive].(bool)
	if n, ok := amqp.AsInt(spec.Args[argMaxPriority]); ok {
		q.index.setPriorities(int(n))
	}
	if q.name != "" { // else it is for parking
		q.policies = v.matchLocked(q.name, q.policyKind())
	}
	q.settings.Store(newQueueSettings(q.args, q.policies.definition()))
	q.mu.Lock()
	q.touchLocked()
	q.mu.Unlock()
	return q
}

// addQueueLocked makes the queue known.
func (v *VHost) addQueueLocked(q *Queue) {
	v.queues[q.name] = q
	v.broker.addQueue(q)
	v.changedLocked()
}

// define gives a queue that is logged its id and puts its definition into a batch.
func (q *Queue) define(b *store.Batch) error {
	if !q.logged {
		return nil
	}
	id, err := q.broker.ids.take()
	if err != nil {
		return q.broker.waited(err)
	}
	q.id = id
	value, err := encodeQueue(q)
	if err != nil {
		return err
	}
	b.Put(queueDefinition(q.vhost.name, q.name), value)
	return nil
}

// checkEquivalent compares a declaration with the queue.
func (q *Queue) checkEquivalent(s *Session, spec *QueueSpec) error {
	if spec.Exclusive != (q.owner != nil) || spec.Exclusive && q.owner != s {
		return q.locked()
	}
	d := difference{what: q.String()}
	d.flag("durable", spec.Durable && !spec.Exclusive, q.durable)
	d.flag("auto_delete", spec.AutoDelete, q.autoDelete)
	for _, c := range queueArguments() {
		if c.name == argDeliveryLimit || c.name == argTimeout {
			continue // not compared, as in RabbitMQ
		}
		d.argument(c.name, spec.Args, q.args)
	}
	return d.err
}

// checkTypeOfQueue refuses the queue types that are not there, and combinations that RabbitMQ
// refuses.
func checkTypeOfQueue(spec *QueueSpec, vhost string) error {
	name := nameQueue(spec.Name, vhost)
	switch spec.Args[argQueueType] {
	case "stream":
		return amqp.Errorf(amqp.NotImplemented, "%s: streams are not supported; "+
			"use queue type 'classic' or 'quorum'", name)
	case "quorum":
		switch {
		case spec.AutoDelete:
			return invalidProperty("auto-delete", name)
		case spec.Exclusive:
			return invalidProperty("exclusive-owner", name)
		case !spec.Durable:
			return invalidProperty("non-durable", name)
		}
	}
	return nil
}

func invalidProperty(property, what string) error {
	return amqp.Errorf(amqp.PreconditionFailed, "invalid property '%s' for %s", property, what)
}

// info is the answer to a declaration.
func (q *Queue) info() QueueInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	return QueueInfo{Name: q.name, Messages: q.index.ready, Consumers: len(q.consumers)}
}
