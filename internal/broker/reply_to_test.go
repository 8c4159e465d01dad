package broker

import (
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

func withReplyTo(name string) option {
	return func(p *amqp.Properties) { p.ReplyTo = []byte(name); p.Set(amqp.FlagReplyTo) }
}

func TestDirectReply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("requests", nil)
	f := &fakeReceiver{}
	c, err := r.p.ConsumeReplies(true, f)
	if err != nil {
		t.Fatal(err)
	}
	r.publish("", "requests", "request", withReplyTo(ReplyQueue))
	request := r.take("requests")
	address := string(request.props.ReplyTo)
	if !strings.HasPrefix(address, "amq.rabbitmq.reply-to.") || len(address) < 40 || !request.props.IsPersistent() {
		t.Fatalf("got reply-to %q", address)
	}
	answering := r.connect("guest").NewPublisher()
	res, err := answering.Publish(newMessage("", address, "answer", withHeaders(amqp.Table{"BCC": []any{"x"}, "a": "b"})))
	if err != nil || !res.Routed || res.LSN != 0 {
		t.Errorf("got %+v, %v", res, err)
	}
	got := f.take()
	if len(got) != 1 || got[0].body != "answer" || got[0].key != address || got[0].headers["BCC"] != nil {
		t.Errorf("got %+v", got)
	}
	if _, err := r.QueueDeclare(QueueSpec{Name: address, Passive: true}); err != nil {
		t.Errorf("asking for the requester: %v", err)
	}
	c.Cancel()
	_, err = r.QueueDeclare(QueueSpec{Name: address, Passive: true})
	wantError(t, err, amqp.NotFound, "no queue '"+address+"'")
	if res, err := answering.Publish(newMessage("", address, "late")); err != nil || res.Routed {
		t.Errorf("to one that is gone: got %+v, %v", res, err)
	}
	_, err = r.p.Publish(newMessage("", "requests", "m", withReplyTo(ReplyQueue)))
	wantError(t, err, amqp.PreconditionFailed, "fast reply consumer does not exist")
	r.publish("", "requests", "m", withReplyTo("another queue"))
	if got := string(r.take("requests").props.ReplyTo); got != "another queue" {
		t.Errorf("got %q", got)
	}
}

func TestReplyConsumerRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.p.ConsumeReplies(false, &fakeReceiver{})
	wantError(t, err, amqp.PreconditionFailed, "reply consumer cannot acknowledge")
	if _, err := r.p.ConsumeReplies(true, &fakeReceiver{}); err != nil {
		t.Fatal(err)
	}
	_, err = r.p.ConsumeReplies(true, &fakeReceiver{})
	wantError(t, err, amqp.PreconditionFailed, "reply consumer already set")
}

func TestReplyInTx(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := &fakeReceiver{}
	c, err := r.p.ConsumeReplies(true, f)
	if err != nil {
		t.Fatal(err)
	}
	tx := r.connect("guest").NewPublisher().NewTx()
	if err := tx.Publish(newMessage("", c.Address(), "answer")); err != nil {
		t.Fatal(err)
	}
	wantBodies(t, "before commit", f.bodies())
	if _, err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantBodies(t, "after commit", f.bodies(), "answer")
}
