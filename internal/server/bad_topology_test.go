package server

import (
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// TestBadTopology plays what a client may get wrong about exchanges, queues and bindings, and checks
// code, text and the method that the close names. On the server are a queue q with a consumer, an
// exclusive queue of another connection, and an exchange x that is bound to q.
func TestBadTopology(t *testing.T) {
	t.Parallel()
	ttl := func(ms int32) amqp.RawTable { return rawTable(t, amqp.Table{"x-message-ttl": ms}) }
	for _, tt := range []struct {
		name   string
		method wire.Method
		code   uint16
		text   string
	}{
		{"queue with other arguments", &wire.QueueDeclare{Queue: "q", Arguments: ttl(5)}, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value " +
				"'5' of type 'signedint' but current is none"},
		{"queue with another property", &wire.QueueDeclare{Queue: "q", Durable: true}, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'"},
		{"exchange of another type", &wire.ExchangeDeclare{Exchange: "x", Type: "fanout"}, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'"},
		{"queue with a wrong argument", &wire.QueueDeclare{Queue: "new", Arguments: ttl(-1)}, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'new' in vhost '/': {value_negative,-1}"},
		{"stream", &wire.QueueDeclare{Queue: "s", Durable: true, Arguments: rawTable(t, amqp.Table{"x-queue-type": "stream"})},
			amqp.NotImplemented, "NOT_IMPLEMENTED - queue 's' in vhost '/': streams are not supported; use queue type 'classic' or 'quorum'"},
		{"declare another's exclusive queue", &wire.QueueDeclare{Queue: "theirs", Exclusive: true}, amqp.ResourceLocked, locked},
		{"look at another's exclusive queue", &wire.QueueDeclare{Queue: "theirs", Passive: true}, amqp.ResourceLocked, locked},
		{"consume from another's exclusive queue", &wire.BasicConsume{Queue: "theirs"}, amqp.ResourceLocked, locked},
		{"get from another's exclusive queue", &wire.BasicGet{Queue: "theirs"}, amqp.ResourceLocked, locked},
		{"bind another's exclusive queue", &wire.QueueBind{Queue: "theirs", Exchange: "x"}, amqp.ResourceLocked, locked},
		{"purge another's exclusive queue", &wire.QueuePurge{Queue: "theirs"}, amqp.ResourceLocked, locked},
		{"delete another's exclusive queue", &wire.QueueDelete{Queue: "theirs"}, amqp.ResourceLocked, locked},
		{"bind no queue", &wire.QueueBind{Queue: "none", Exchange: "x"}, amqp.NotFound,
			"NOT_FOUND - no queue 'none' in vhost '/'"},
		{"bind to no exchange", &wire.QueueBind{Queue: "q", Exchange: "none"}, amqp.NotFound,
			"NOT_FOUND - no exchange 'none' in vhost '/'"},
		{"bind to the default exchange", &wire.QueueBind{Queue: "q"}, amqp.AccessRefused,
			"ACCESS_REFUSED - operation not permitted on the default exchange"},
		{"bind an exchange to none", &wire.ExchangeBind{Destination: "x", Source: "none"}, amqp.NotFound,
			"NOT_FOUND - no exchange 'none' in vhost '/'"},
		{"delete a queue that is in use", &wire.QueueDelete{Queue: "q", IfUnused: true}, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - queue 'q' in vhost '/' in use"},
		{"delete an exchange that is in use", &wire.ExchangeDelete{Exchange: "x", IfUnused: true}, amqp.PreconditionFailed,
			"PRECONDITION_FAILED - exchange 'x' in vhost '/' in use"},
		{"delete an exchange that everybody has", &wire.ExchangeDelete{Exchange: "amq.topic"}, amqp.AccessRefused,
			"ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) {
				s := newTestServer(t)
				other := s.pipe().open(0).channel(1)
				other.send(1, &wire.QueueDeclare{Queue: "theirs", Exclusive: true})
				other.expect(1, &wire.QueueDeclareOk{})
				p := s.pipe().open(0).channel(1).channel(2)
				p.declare(2, "q")
				p.consume(2, &wire.BasicConsume{Queue: "q"})
				p.send(2, &wire.ExchangeDeclare{Exchange: "x", Type: "direct"}, &wire.QueueBind{Queue: "q", Exchange: "x"})
				p.expect(2, &wire.ExchangeDeclareOk{})
				p.expect(2, &wire.QueueBindOk{})
				p.send(1, tt.method)
				var m wire.ChannelClose
				if tt.code == amqp.NotImplemented {
					var m wire.ConnectionClose
					p.expect(0, &m)
					if m.ReplyCode != tt.code || m.ReplyText != tt.text {
						t.Errorf("got %d %q, want %d %q", m.ReplyCode, m.ReplyText, tt.code, tt.text)
					}
					p.send(0, &wire.ConnectionCloseOk{})
					p.expectEnd()
					other.close()
					return
				}
				p.expect(1, &m)
				method := wire.MethodID(m.ClassID)<<16 | wire.MethodID(m.MethodID)
				if m.ReplyCode != tt.code || m.ReplyText != tt.text || method != tt.method.ID() {
					t.Errorf("got %d %q for %s, want %d %q", m.ReplyCode, m.ReplyText, method, tt.code, tt.text)
				}
				p.send(1, &wire.ChannelCloseOk{})
				p.channel(1).close()
				other.close()
			})
		})
	}
}

const locked = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'theirs' in vhost '/'. It could be " +
	"originally declared on another connection or the exclusive property value does not match that of the " +
	"original declaration."
