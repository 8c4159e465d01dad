package broker

import (
	"bytes"

	"github.com/duepost/duepost/internal/amqp"
)

// Rights are what the user of a session may do in its virtual host, at the time of asking. The
// methods may be called from any goroutine, and must not call the broker. [rmq access-control]
type Rights interface {
	// Version is another number after a change that may change an answer. It is asked once
	// for each message.
	Version() uint64
	// MayEnter, MayConfigure, MayWrite and MayRead are about queues and exchanges by name; the
	// default exchange is called amq.default.
	MayEnter() bool
	MayConfigure(name string) bool
	MayWrite(name string) bool
	MayRead(name string) bool
	// HasTopics reports whether routing keys are limited for a topic exchange. If not,
	// MayWriteTopic and MayReadTopic are true for all of them.
	HasTopics(exchange string) bool
	MayWriteTopic(exchange, key string) bool
	MayReadTopic(exchange, key string) bool
	// MayImpersonate reports whether messages may carry the user-id of another.
	MayImpersonate() bool
}

// allRights are those of a session that nobody limits.
type allRights struct{}

func (allRights) Version() uint64                   { return 0 }
func (allRights) MayEnter() bool                    { return true }
func (allRights) MayConfigure(string) bool          { return true }
func (allRights) MayWrite(string) bool              { return true }
func (allRights) MayRead(string) bool               { return true }
func (allRights) HasTopics(string) bool             { return false }
func (allRights) MayWriteTopic(string, string) bool { return true }
func (allRights) MayReadTopic(string, string) bool  { return true }
func (allRights) MayImpersonate() bool              { return false }

// A permit is one of the questions that Rights answer about a name.
type permit func(name string) bool

// checkExchange refuses what the user has no right to.
func (s *Session) checkExchange(may permit, name string) error {
	if name == "" {
		name = "amq.default"
	}
	if may(name) {
		return nil
	}
	return s.refused(nameExchange(name, s.vhost.name))
}

// checkQueue refuses what the user has no right to.
func (s *Session) checkQueue(may permit, name string) error {
	if may(name) {
		return nil
	}
	return s.refused(nameQueue(name, s.vhost.name))
}

func (s *Session) refused(what string) error {
	return amqp.Errorf(amqp.AccessRefused, "access to %s refused for user '%s'", what, s.user)
}

// checkTopic refuses routing keys that topic permissions forbid.
func (s *Session) checkTopic(may func(exchange, key string) bool, exchange, key string) error {
	if may(exchange, key) {
		return nil
	}
	return s.refused("topic '" + key + "' in " + nameExchange(exchange, s.vhost.name))
}

// checkBinding refuses to bind or unbind: that writes to the destination and reads from the
// source. An exchange that is not there has no topics.
func (s *Session) checkBinding(b *Binding, toExchange bool) error {
	source, destination := cleanName(b.Source), cleanName(b.Destination)
	check := s.checkQueue
	if toExchange {
		check = s.checkExchange
	}
	if err := check(s.rights.MayWrite, destination); err != nil {
		return err
	}
	if source == "" || toExchange && destination == "" {
		return defaultExchangeRefused()
	}
	if err := s.checkExchange(s.rights.MayRead, source); err != nil {
		return err
	}
	if x := s.vhost.exchange(source); x != nil && x.typeName == "topic" {
		return s.checkTopic(s.rights.MayReadTopic, source, b.RoutingKey)
	}
	return nil
}

// checkOther refuses an exchange that messages of what is declared may go to by themselves: they
// are read from there and written to here.
func (s *Session) checkOther(args amqp.Table, argument, name string, check func(permit, string) error) error {
	other, ok := args[argument].(string)
	if !ok { // none, or no name, which others refuse
		return nil
	}
	if err := check(s.rights.MayRead, name); err != nil {
		return err
	}
	return s.checkExchange(s.rights.MayWrite, other)
}

// written is the exchange that a channel may publish to, as it was when rights last changed.
type written struct {
	version  uint64
	exchange []byte
	known    bool // the other fields mean something
	topics   bool // routing keys are limited, so each has to be asked for
}

// permit refuses a message that the user may not publish. What it finds out about an exchange
// holds for the messages to it that follow, until rights change.
func (p *Publisher) permit(m *Message) error {
	version := p.session.rights.Version() // before the answers: what changes meanwhile makes them stale
	w := &p.written
	if !w.known || w.version != version || !bytes.Equal(w.exchange, m.Exchange) {
		if err := p.permitExchange(m.Exchange, version); err != nil {
			return err
		}
	}
	if w.topics {
		return p.session.checkTopic(p.session.rights.MayWriteTopic, string(m.Exchange), string(m.RoutingKey))
	}
	return nil
}

// permitExchange is permit for an exchange that is not remembered.
func (p *Publisher) permitExchange(exchange []byte, version uint64) error {
	s, w := p.session, &p.written
	name := string(exchange)
	if err := s.checkExchange(s.rights.MayWrite, name); err != nil {
		return err
	}
	x := s.vhost.exchange(name)
	switch {
	case x == nil:
		return exchangeNotFound(name, s.vhost.name)
	case x.internal:
		return x.internalRefused()
	}
	w.version, w.exchange, w.known = version, append(w.exchange[:0], exchange...), true
	w.topics = x.typeName == "topic" && s.rights.HasTopics(name)
	return nil
}
