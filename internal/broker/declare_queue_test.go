package broker

import (
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func TestQueueDeclareRefusesArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		args amqp.Table
		text string
	}{
		{amqp.Table{"x-message-ttl": "60"}, `invalid arg 'x-message-ttl' for queue 'q' in vhost '/': "expected integer, got longstr"`},
		{amqp.Table{"x-message-ttl": int32(-1)}, "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-1}"},
		{amqp.Table{"x-message-ttl": int64(315_360_000_001)}, "{value_too_large,315360000001}"},
		{amqp.Table{"x-expires": int32(0)}, "invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}"},
		{amqp.Table{"x-expires": 1.5}, "expected integer, got double"},
		{amqp.Table{"x-dead-letter-exchange": int32(1)}, "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"},
		{amqp.Table{"x-dead-letter-routing-key": "k"}, "routing_key_but_no_dlx_defined"},
		{amqp.Table{"x-dead-letter-routing-key": true, "x-dead-letter-exchange": "x"}, "{unacceptable_type,bool}"},
		{amqp.Table{"x-dead-letter-strategy": "never"}, "invalid_dlx_strategy"},
		{amqp.Table{"x-max-length": int32(-5)}, "{value_negative,-5}"},
		{amqp.Table{"x-max-length-bytes": true}, "expected integer, got bool"},
		{amqp.Table{"x-overflow": "burst"}, "invalid_overflow"},
		{amqp.Table{"x-max-priority": int32(256)}, "{max_value_exceeded,256}"},
		{amqp.Table{"x-queue-mode": "eager"}, `"unsupported queue mode 'eager'"`},
		{amqp.Table{"x-queue-version": int32(3)}, "unsupported queue version '3'"},
		{amqp.Table{"x-single-active-consumer": "yes"}, "{unacceptable_type,longstr}"},
		{amqp.Table{"x-queue-type": "other"}, "unsupported queue type 'other'"},
		{amqp.Table{"x-queue-type": int32(1)}, "{unacceptable_type,signedint}"},
		{amqp.Table{"x-delivery-limit": int32(1)}, "invalid arg 'x-delivery-limit' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{amqp.Table{"x-max-age": "1D"}, "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{amqp.Table{"x-queue-type": "quorum", "x-max-priority": "x"}, "invalid arg 'x-max-priority' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue"},
		{amqp.Table{"x-queue-type": "quorum", "x-queue-mode": "lazy"}, "invalid arg 'x-queue-mode' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue"},
	} {
		_, err := r.QueueDeclare(QueueSpec{Name: "q", Args: c.args})
		wantError(t, err, amqp.PreconditionFailed, c.text)
	}
	if r.vhost.queue("q") != nil {
		t.Error("a refused queue was created")
	}
}

func TestQueueDeclareAcceptsWhatRabbitMQAccepts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", amqp.Table{
		"x-message-ttl": int64(60000), "x-expires": uint32(60000), "x-max-length": int16(10),
		"x-max-length-bytes": int8(100), "x-overflow": "reject-publish-dlx", "x-max-priority": uint8(255),
		"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k", "x-dead-letter-strategy": "at-least-once",
		"x-queue-mode": "lazy", "x-queue-version": int32(2), "x-single-active-consumer": false,
		"x-queue-type": "classic", "x-something-else": amqp.Table{"a": true},
	})
	r.queue("quorum", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(-1)}, "durable")
}

func TestQueueTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stream, quorum := amqp.Table{"x-queue-type": "stream"}, amqp.Table{"x-queue-type": "quorum"}
	_, err := r.QueueDeclare(QueueSpec{Name: "q", Durable: true, Args: stream})
	wantError(t, err, amqp.NotImplemented, "streams are not supported")
	_, err = r.QueueDeclare(QueueSpec{Name: "q", Args: quorum})
	wantError(t, err, amqp.PreconditionFailed, "invalid property 'non-durable' for queue 'q' in vhost '/'")
	_, err = r.QueueDeclare(QueueSpec{Name: "q", Durable: true, AutoDelete: true, Args: quorum})
	wantError(t, err, amqp.PreconditionFailed, "invalid property 'auto-delete' for queue 'q' in vhost '/'")
	_, err = r.QueueDeclare(QueueSpec{Name: "q", Durable: true, Exclusive: true, Args: quorum})
	wantError(t, err, amqp.PreconditionFailed, "invalid property 'exclusive-owner' for queue 'q' in vhost '/'")
}

func TestQueueDeclareEquivalence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", amqp.Table{"x-message-ttl": int32(1000)}, "durable")
	r.queue("q", amqp.Table{"x-message-ttl": int64(1000), "other": "x", "x-queue-type": "classic"}, "durable")
	for _, c := range []struct {
		spec QueueSpec
		text string
	}{
		{QueueSpec{Name: "q", Durable: true}, "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': " +
			"received none but current is the value '1000' of type 'signedint'"},
		{QueueSpec{Name: "q", Durable: true, Args: amqp.Table{"x-message-ttl": int32(2000)}},
			"inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '2000' but current is '1000'"},
		{QueueSpec{Name: "q", Args: amqp.Table{"x-message-ttl": int32(1000)}},
			"inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"},
		{QueueSpec{Name: "q", Durable: true, AutoDelete: true, Args: amqp.Table{"x-message-ttl": int32(1000)}},
			"inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'"},
		{QueueSpec{Name: "q", Durable: true, Args: amqp.Table{"x-message-ttl": int32(1000), "x-queue-type": "quorum"}},
			"inequivalent arg 'x-queue-type'"},
	} {
		_, err := r.QueueDeclare(c.spec)
		wantError(t, err, amqp.PreconditionFailed, c.text)
	}
	r.queue("plain", nil)
	_, err := r.QueueDeclare(QueueSpec{Name: "plain", Exclusive: true})
	wantError(t, err, amqp.ResourceLocked, "cannot obtain exclusive access to locked queue 'plain'")
}

func TestQueueNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.QueueDeclare(QueueSpec{Name: "amq.mine"})
	wantError(t, err, amqp.AccessRefused, "queue name 'amq.mine' contains reserved prefix 'amq.*'")
	_, err = r.QueueDeclare(QueueSpec{Durable: true, Args: amqp.Table{"x-queue-type": "quorum"}})
	wantError(t, err, amqp.PreconditionFailed, "Cannot declare a server-named queue for type rabbit_quorum_queue")
	info, err := r.QueueDeclare(QueueSpec{})
	if err != nil || !strings.HasPrefix(info.Name, "amq.gen-") || len(info.Name) != len("amq.gen-")+26 {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := r.QueueDeclare(QueueSpec{Name: info.Name}); err != nil {
		t.Errorf("declaring a server-named queue again: %v", err)
	}
	other, err := r.QueueDeclare(QueueSpec{})
	if err != nil || other.Name == info.Name {
		t.Errorf("got %q twice, %v", other.Name, err)
	}
	_, err = r.QueueDeclare(QueueSpec{Name: "none", Passive: true})
	wantError(t, err, amqp.NotFound, "no queue 'none' in vhost '/'")
	r.queue("q", nil)
	r.publish("", "q", "a")
	r.consume("q", 0, ConsumerSpec{})
	info, err = r.QueueDeclare(QueueSpec{Name: "q", Passive: true})
	if err != nil || info != (QueueInfo{Name: "q", Messages: 1, Consumers: 1}) {
		t.Errorf("passive: got %+v, %v", info, err)
	}
}

func TestConnectToUnknownVHost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Connect("nowhere", "guest", nil)
	wantError(t, err, amqp.NotAllowed, "vhost nowhere not found")
}
