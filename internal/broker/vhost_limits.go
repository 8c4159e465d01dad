package broker

import (
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/store"
)

// What of a virtual host can be limited.
const (
	MaxConnections = "max-connections"
	MaxQueues      = "max-queues"
)

// VHostLimits are limits of a virtual host by name. A negative one is none. [rmq vhost limits]
type VHostLimits map[string]int64

// Unknown returns the names of limits that there are not, in order.
func (l VHostLimits) Unknown() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l)), func(name string) bool {
		return name == MaxConnections || name == MaxQueues
	})
}

// Allow reports whether there may be n of what the name says.
func (l VHostLimits) Allow(name string, n int) bool {
	limit, ok := l[name]
	return !ok || limit < 0 || int64(n) <= limit
}

// Limits returns the limits of the virtual host. They are not to be changed.
func (v *VHost) Limits() VHostLimits {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.limits
}

// SetLimits replaces the limits of the virtual host. What is there already stays. They are durable
// when SetLimits returns.
func (v *VHost) SetLimits(l VHostLimits) error {
	l = maps.Clone(l)
	if l == nil {
		l = VHostLimits{}
	}
	_, err := v.Declare(&Declarations{Limits: l})
	return err
}

// define puts limits into a batch.
func (l VHostLimits) define(b *store.Batch, vhost string) error {
	if unknown := l.Unknown(); len(unknown) > 0 {
		return amqp.Errorf(amqp.PreconditionFailed, "there is no limit '%s' of a virtual host", unknown[0])
	}
	if len(l) == 0 {
		b.Delete(definitionKey(limitsPrefix, vhost))
		return nil
	}
	fields := make(amqp.Table, len(l))
	for name, n := range l {
		fields[name] = n
	}
	text, err := encodeArguments(fields)
	b.Put(definitionKey(limitsPrefix, vhost), amqp.AppendLongStr([]byte{definitionVersion}, text))
	return err
}

func (r *recovery) vhostLimits(key string, d *definition) error {
	v, _, err := r.owner(key)
	if err != nil {
		return err
	}
	d.version()
	v.limits = make(VHostLimits)
	for name, n := range d.arguments() {
		v.limits[name], _ = amqp.AsInt(n)
	}
	return nil
}

// checkQueues refuses a queue more than there may be in a virtual host, whose lock the caller holds.
// [rmq vhost limits]
func (l VHostLimits) checkQueues(v *VHost, name string) error {
	if l.Allow(MaxQueues, len(v.queues)+1) {
		return nil
	}
	return amqp.Errorf(amqp.PreconditionFailed,
		"cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached", name, v.name, l[MaxQueues])
}

// enter counts a session, or refuses it where there may be no more. [rmq vhost limits]
func (v *VHost) enter(user string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.limits.Allow(MaxConnections, v.sessions+1) {
		return amqp.Errorf(amqp.NotAllowed, "access to vhost '%s' refused for user '%s': "+
			"connection limit (%d) is reached", v.name, user, v.limits[MaxConnections])
	}
	v.sessions++
	return nil
}
