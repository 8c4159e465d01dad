package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/auth"
)

// limited opens a session in / of user u, who may configure names with c, write those with w and
// amq.topic, read those with r, cr and amq.topic, and, in amq.topic, write keys with w and read
// keys with a.
func (r *rig) limited() (*auth.Users, *Session) {
	r.t.Helper()
	users := auth.NewUsers()
	err := users.Put(auth.Records{
		Users:       []auth.User{{Name: "u"}},
		Permissions: []auth.Permission{{User: "u", VHost: "/", Configure: "^c", Write: "^w|^amq.topic", Read: "^r|^cr|^amq.topic"}},
		TopicPermissions: []auth.TopicPermission{
			{User: "u", VHost: "/", Exchange: "amq.topic", Write: "^w", Read: "^a"},
			{User: "u", VHost: "/", Exchange: "wx", Write: "^never", Read: "^never"}, // no topic exchange
			{User: "u", VHost: "/", Exchange: "rx", Write: "^never", Read: "^never"},
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := r.Connect("/", "u", users.Rights("u", "/"))
	if err != nil {
		r.t.Fatal(err)
	}
	return users, s
}

// The answers are those of RabbitMQ 3.10.8, save for the user's name.
func TestRightsAreCheckedWhereRabbitMQDoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, x := range []string{"x", "wx", "rx"} {
		r.exchange(x, "direct", nil)
	}
	mustDo(t, r.ExchangeDeclare(ExchangeSpec{Name: "wint", Type: "direct", Durable: true, Internal: true}))
	for _, q := range []string{"q", "w", "r"} {
		r.queue(q, nil, "durable")
	}
	_, s := r.limited()
	exchange := func(name string, args amqp.Table) error {
		return s.ExchangeDeclare(ExchangeSpec{Name: name, Type: "direct", Durable: true, Args: args})
	}
	queue := func(name string, args amqp.Table) error {
		_, err := s.QueueDeclare(QueueSpec{Name: name, Durable: true, Args: args})
		return err
	}
	publish := func(exchange, key string, options ...option) error {
		_, err := s.NewPublisher().Publish(newMessage(exchange, key, "", options...))
		return err
	}
	other := func(argument string, value any) amqp.Table { return amqp.Table{argument: value} }
	must := func(what any, err error) error { return err }
	bind := func(source, destination, key string) Binding {
		return Binding{Source: source, Destination: destination, RoutingKey: key}
	}
	badUser := func(p *amqp.Properties) { p.UserID = []byte("z"); p.Set(amqp.FlagUserID) }
	const (
		onDefault = "operation not permitted on the default exchange"
	)
	no := func(what string) string { return "access to " + what + " in vhost '/' refused for user 'u'" }
	for _, tt := range []struct {
		what string
		err  error
		code uint16 // 0 for none
		text string
	}{
		{"exchange.declare", exchange("x", nil), 403, no("exchange 'x'")},
		{"exchange.declare of a new one", exchange("new", nil), 403, no("exchange 'new'")},
		{"exchange.declare amq.", exchange("amq.foo", nil), 403, no("exchange 'amq.foo'")},
		{"exchange.declare of the default", exchange("", nil), 403, onDefault},
		{"exchange.declare passive", s.ExchangeDeclare(ExchangeSpec{Name: "x", Passive: true}), 0, ""},
		{"alternate without read", exchange("cx1", other(argAlternate, "x")), 403, no("exchange 'cx1'")},
		{"alternate without write", exchange("crx1", other(argAlternate, "x")), 403, no("exchange 'x'")},
		{"alternate", exchange("crx2", other(argAlternate, "wx")), 0, ""},
		{"alternate default", exchange("crx3", other(argAlternate, "")), 403, no("exchange 'amq.default'")},
		{"alternate of an existing one", exchange("crx2", other(argAlternate, "x")), 406,
			"inequivalent arg 'alternate-exchange' for exchange 'crx2' in vhost '/': "},
		{"exchange.delete", s.ExchangeDelete("x", false), 403, no("exchange 'x'")},
		{"exchange.delete of none", s.ExchangeDelete("new", false), 403, no("exchange 'new'")},
		{"exchange.delete amq.", s.ExchangeDelete("amq.direct", false), 403,
			"deletion of system exchange 'amq.direct' in vhost '/' not allowed"},

		{"queue.declare", queue("q", nil), 403, no("queue 'q'")},
		{"queue.declare of a new one", queue("new", nil), 403, no("queue 'new'")},
		{"queue.declare amq.", queue("amq.foo", nil), 403, "queue name 'amq.foo' contains reserved prefix 'amq.*'"},
		{"queue.declare passive", must(s.QueueDeclare(QueueSpec{Name: "q", Passive: true})), 0, ""},
		{"dead letters without read", queue("cq1", other(argDLX, "x")), 403, no("queue 'cq1'")},
		{"dead letters without write", queue("crq1", other(argDLX, "x")), 403, no("exchange 'x'")},
		{"dead letters", queue("crq2", other(argDLX, "wx")), 0, ""},
		{"dead letters to default", queue("crq3", other(argDLX, "")), 403, no("exchange 'amq.default'")},
		{"dead letters of an existing one", queue("crq2", other(argDLX, "x")), 406,
			"inequivalent arg 'x-dead-letter-exchange' for queue 'crq2' in vhost '/': "},
		{"queue.delete", must(s.QueueDelete("q", false, false)), 403, no("queue 'q'")},
		{"queue.delete of none", must(s.QueueDelete("new", false, false)), 403, no("queue 'new'")},
		{"queue.purge", must(s.QueuePurge("q")), 403, no("queue 'q'")},
		{"queue.purge with read", must(s.QueuePurge("r")), 0, ""},

		{"queue.bind", s.QueueBind(bind("x", "q", "k")), 403, no("queue 'q'")},
		{"queue.bind without read", s.QueueBind(bind("x", "w", "k")), 403, no("exchange 'x'")},
		{"queue.bind with both", s.QueueBind(bind("rx", "w", "k")), 0, ""},
		{"queue.bind to default", s.QueueBind(bind("", "w", "k")), 403, onDefault},
		{"queue.bind to default without write", s.QueueBind(bind("", "q", "k")), 403, no("queue 'q'")},
		{"queue.bind to none", s.QueueBind(bind("rnew", "w", "k")), 404, "no exchange 'rnew' in vhost '/'"},
		{"queue.bind topic", s.QueueBind(bind("amq.topic", "w", "a")), 0, ""},
		{"queue.bind forbidden topic", s.QueueBind(bind("amq.topic", "w", "b")), 403, no("topic 'b' in exchange 'amq.topic'")},
		{"queue.unbind forbidden topic", s.QueueUnbind(bind("amq.topic", "w", "b")), 403, no("topic 'b' in exchange 'amq.topic'")},
		{"queue.unbind", s.QueueUnbind(bind("x", "w", "k")), 403, no("exchange 'x'")},
		{"exchange.bind", s.ExchangeBind(bind("x", "x", "k")), 403, no("exchange 'x'")},
		{"exchange.bind default", s.ExchangeBind(bind("x", "", "k")), 403, no("exchange 'amq.default'")},
		{"exchange.bind with both", s.ExchangeBind(bind("rx", "wx", "k")), 0, ""},
		{"exchange.unbind", s.ExchangeUnbind(bind("x", "wx", "k")), 403, no("exchange 'x'")},

		{"basic.publish", publish("x", "k"), 403, no("exchange 'x'")},
		{"basic.publish to default", publish("", "q"), 403, no("exchange 'amq.default'")},
		{"basic.publish to none", publish("new", "k"), 403, no("exchange 'new'")},
		{"basic.publish with write", publish("wx", "k"), 0, ""},
		{"basic.publish with write to none", publish("wnew", "k"), 404, "no exchange 'wnew' in vhost '/'"},
		{"basic.publish to internal", publish("wint", "k"), 403, "cannot publish to internal exchange 'wint' in vhost '/'"},
		{"basic.publish topic", publish("amq.topic", "w"), 0, ""},
		{"basic.publish forbidden topic", publish("amq.topic", "z"), 403, no("topic 'z' in exchange 'amq.topic'")},
		{"basic.publish with wrong user-id", publish("wx", "k", badUser), 406,
			"user_id property set to 'z' but authenticated user was 'u'"},
		{"basic.publish without write, with wrong user-id", publish("x", "k", badUser), 403, no("exchange 'x'")},
		{"tx", s.NewPublisher().NewTx().Publish(newMessage("x", "k", "")), 403, no("exchange 'x'")},

		{"basic.get, basic.consume", must(s.Queue("q")), 403, no("queue 'q'")},
		{"basic.get, basic.consume of none", must(s.Queue("new")), 403, no("queue 'new'")},
		{"basic.get, basic.consume with read", must(s.Queue("r")), 0, ""},
	} {
		var e *amqp.Error
		switch {
		case tt.code == 0 && tt.err != nil:
			t.Errorf("%s: %v, want no error", tt.what, tt.err)
		case tt.code != 0 && (!errors.As(tt.err, &e) || uint16(e.Code) != tt.code || !strings.HasPrefix(e.Text, tt.text)):
			t.Errorf("%s: %v, want %d %s", tt.what, tt.err, tt.code, tt.text)
		}
	}
}

// A channel that has published goes on asking only after a change, and then at once.
func TestChangedRightsCountForOpenChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("r", nil)
	users, s := r.limited()
	p := s.NewPublisher()
	publish := func(exchange, key string) error {
		_, err := p.Publish(newMessage(exchange, key, ""))
		return err
	}
	wantError(t, publish("", "r"), 403, "refused")
	give := func(write, topics string) {
		mustDo(t, users.Put(auth.Records{
			Permissions:      []auth.Permission{{User: "u", VHost: "/", Write: write}},
			TopicPermissions: []auth.TopicPermission{{User: "u", VHost: "/", Exchange: "amq.topic", Write: topics}},
		}))
	}
	give("amq", ".*")
	mustDo(t, publish("", "r"))
	mustDo(t, publish("amq.topic", "a"))
	give("amq", "^b")
	wantError(t, publish("amq.topic", "a"), 403, "refused")
	mustDo(t, publish("amq.topic", "b"))
	give("^$", ".*")
	wantError(t, publish("amq.topic", "b"), 403, "refused")
	wantError(t, publish("", "r"), 403, "refused")
	if _, err := users.DeletePermission("u", "/"); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Check(), 530, "access to vhost '/' refused for user 'u'")
	_, err := r.Connect("/", "u", users.Rights("u", "/"))
	wantError(t, err, 530, "access to vhost '/' refused for user 'u'")
}

func TestImpersonatorMaySetUserID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	users, s := r.limited()
	mustDo(t, users.Put(auth.Records{Users: []auth.User{{Name: "u", Tags: []string{auth.Impersonator}}}}))
	as := func(p *amqp.Properties) { p.UserID = []byte("z"); p.Set(amqp.FlagUserID) }
	_, err := s.NewPublisher().Publish(newMessage("amq.topic", "w", "", as))
	mustDo(t, err)
}
