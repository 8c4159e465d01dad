package broker

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// VHostMetadata is what is kept about a virtual host for its operators.
type VHostMetadata struct {
	Description string
	Tags        []string
	// DefaultQueueType is the type of queues that are declared without one, if the type allows
	// for such a queue; empty is none. [rmq default queue type]
	DefaultQueueType string
	Tracing          bool // kept and told, and of no effect
}

// CheckVHost says what is wrong with a virtual host that is to be made.
func CheckVHost(name string, m *VHostMetadata) error {
	switch {
	case name == "" || len(name) > amqp.MaxShortStr:
		return amqp.Errorf(amqp.PreconditionFailed, "name of vhost has %d bytes, must have 1 to %d",
			len(name), amqp.MaxShortStr)
	case m.DefaultQueueType == "" || m.DefaultQueueType == "classic" || m.DefaultQueueType == "quorum":
		return nil
	}
	return amqp.Errorf(amqp.PreconditionFailed, "invalid default_queue_type '%s' of vhost '%s': "+
		"must be 'classic' or 'quorum'", m.DefaultQueueType, name)
}

// PutVHost makes a virtual host, or gives one that is there other metadata. It is durable when
// PutVHost returns.
func (b *Broker) PutVHost(name string, m VHostMetadata) (created bool, err error) {
	if err := CheckVHost(name, &m); err != nil {
		return false, err
	}
	created, lsn, err := b.putVHost(name, &m)
	if err != nil {
		return false, err
	}
	return created, b.wait(lsn)
}

func (b *Broker) putVHost(name string, m *VHostMetadata) (created bool, lsn store.LSN, err error) {
	value, err := encodeVHost(m)
	if err != nil {
		return false, 0, err
	}
	b.hosting.Lock()
	defer b.hosting.Unlock()
	var batch store.Batch
	batch.Put(vhostDefinition(name), value)
	if lsn, err = b.store.Commit(&batch); err != nil {
		return false, 0, b.waited(err)
	}
	v := b.VHost(name)
	if created = v == nil; created {
		v = newVHost(b, name)
		v.addPredeclared()
	}
	v.metadata.Store(m)
	b.mu.Lock()
	b.vhosts[name] = v
	b.mu.Unlock()
	return created, lsn, nil
}

// Metadata returns what is kept about the virtual host. It is not to be changed.
func (v *VHost) Metadata() VHostMetadata { return *v.metadata.Load() }

// DeleteVHost deletes a virtual host with everything in it, delayed and parked messages included,
// and reports whether there was one. Sessions in it can do nothing any more; to close their
// connections is for others, and to take away the rights in it.
func (b *Broker) DeleteVHost(name string) (existed bool, err error) {
	b.hosting.Lock()
	v := b.VHost(name)
	if v == nil {
		b.hosting.Unlock()
		return false, nil
	}
	queues, consumers, lsn, err := v.deleteAll()
	if err == nil {
		b.mu.Lock()
		delete(b.vhosts, name)
		b.mu.Unlock()
	}
	b.hosting.Unlock()
	for _, q := range queues {
		q.dropAll()
	}
	for _, c := range consumers {
		c.receiver.Cancelled()
	}
	if err != nil {
		return true, err
	}
	b.log.Info("virtual host deleted", "vhost", name, "queues", len(queues))
	return true, b.wait(lsn)
}

// deleteAll ends everything in the virtual host, as one change, and that itself.
func (v *VHost) deleteAll() (queues []*Queue, consumers []*Consumer, lsn store.LSN, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deleted.Store(true)
	var c change
	for _, x := range v.exchanges {
		c.removeExchange(x)
	}
	for _, q := range v.queues {
		c.removeQueue(q)
		queues = append(queues, q)
	}
	for reason, q := range v.parked {
		c.batch.Delete(parkDefinition(v.name, reason))
		c.batch.DropQueue(q.id)
		queues = append(queues, q)
	}
	v.forgetRemainsLocked(&c.batch, func(*Exchange) bool { return true })
	v.forget(&c.batch)
	for _, q := range queues {
		had, _, _ := q.close(func() error { return nil })
		consumers = append(consumers, had...)
	}
	if lsn, err = v.applyLocked(&c); err != nil {
		return nil, nil, 0, err
	}
	for _, q := range v.parked {
		v.broker.removeQueue(q)
	}
	clear(v.parked)
	return queues, consumers, lsn, nil
}

// forget puts the end of the virtual host, its policies and its limits into a batch.
func (v *VHost) forget(b *store.Batch) {
	for _, list := range []*policyList{&v.policies, &v.operatorPolicies} {
		for _, p := range list.All() {
			b.Delete(definitionKey(list.prefix, v.name, p.Name))
		}
	}
	b.Delete(definitionKey(limitsPrefix, v.name))
	b.Delete(vhostDefinition(v.name))
}

// checkAliveLocked refuses to make anything in a virtual host that was deleted.
func (v *VHost) checkAliveLocked() error {
	if v.deleted.Load() {
		return vhostDeleted(v.name)
	}
	return nil
}

func vhostDeleted(name string) error {
	return amqp.Errorf(amqp.ConnectionForced, "vhost '%s' is deleted", name)
}

// withDefaultType returns the arguments of a queue that is to be declared, with the virtual
// host's type where none is given and that type allows for the queue. [rmq default queue type]
func (v *VHost) withDefaultType(spec *QueueSpec) amqp.Table {
	queueType := v.metadata.Load().DefaultQueueType
	_, given := spec.Args[argQueueType]
	if queueType == "" || given {
		return spec.Args
	}
	if queueType == "quorum" && (!spec.Durable || spec.Exclusive || spec.AutoDelete) {
		return spec.Args
	}
	args := amqp.Table{argQueueType: queueType}
	for k, value := range spec.Args {
		args[k] = value
	}
	return args
}

// encodeVHost makes the value of a definition.
func encodeVHost(m *VHostMetadata) ([]byte, error) {
	tags := make([]any, len(m.Tags))
	for i, tag := range m.Tags {
		tags[i] = tag
	}
	fields := amqp.Table{}
	for key, text := range map[string]string{"description": m.Description, "default_queue_type": m.DefaultQueueType} {
		if text != "" {
			fields[key] = text
		}
	}
	if len(tags) > 0 {
		fields["tags"] = tags
	}
	if m.Tracing {
		fields["tracing"] = true
	}
	text, err := encodeArguments(fields)
	return amqp.AppendLongStr([]byte{definitionVersion}, text), err
}

// vhost reads what encodeVHost wrote; nothing is a virtual host without metadata.
func (d *definition) vhost() *VHostMetadata {
	m := new(VHostMetadata)
	if len(d.rest) == 0 {
		return m
	}
	fields := d.arguments()
	m.Description, _ = fields["description"].(string)
	m.DefaultQueueType, _ = fields["default_queue_type"].(string)
	m.Tracing, _ = fields["tracing"].(bool)
	tags, _ := fields["tags"].([]any)
	for _, tag := range tags {
		if text, ok := tag.(string); ok {
			m.Tags = append(m.Tags, text)
		}
	}
	return m
}
