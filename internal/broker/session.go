package broker

import "github.com/duepost/duepost/internal/amqp"

// ExchangeSpec is what exchange.declare says.
type ExchangeSpec struct {
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool // goes when the last binding from it goes
	Internal   bool // cannot be published to by clients
	Passive    bool // only asks whether it exists
	Args       amqp.Table
}

// QueueSpec is what queue.declare says.
type QueueSpec struct {
	Name       string // "" asks for a name
	Durable    bool
	Exclusive  bool // of this session alone, and gone with it
	AutoDelete bool // goes with its last consumer
	Passive    bool // only asks whether it exists
	Args       amqp.Table
}

// QueueInfo is what queue.declare-ok says.
type QueueInfo struct {
	Name      string
	Messages  int // ready
	Consumers int
}

// Binding is what the bind and unbind methods say. Destination is a queue or an exchange by
// the method that it is given to.
type Binding struct {
	Source      string
	Destination string
	RoutingKey  string
	Args        amqp.Table
}

// Session is one connection's view of one virtual host: it owns exclusive queues. Its methods
// may be called from any goroutine. Errors are *amqp.Error. Whatever they change that is
// durable is on stable storage when they return.
type Session struct {
	broker *Broker
	vhost  *VHost
	user   string
	rights Rights

	exclusive map[*Queue]struct{} // owned queues; guarded by vhost.mu
	closed    bool                // guarded by vhost.mu
}

// User returns the name that the session was opened with.
func (s *Session) User() string { return s.user }

// VHost returns the virtual host it works in.
func (s *Session) VHost() *VHost { return s.vhost }

// Check refuses a session whose virtual host was deleted, or whose user lost its rights there,
// since it was opened. Who makes a session known to those who close sessions for such reasons
// asks afterwards, so that no session slips through.
func (s *Session) Check() error {
	switch {
	case s.vhost.deleted.Load():
		return vhostDeleted(s.vhost.name)
	case !s.rights.MayEnter():
		return amqp.Errorf(amqp.NotAllowed, "access to vhost '%s' refused for user '%s'", s.vhost.name, s.user)
	}
	return nil
}
