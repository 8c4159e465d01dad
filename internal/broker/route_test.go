package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
)

// reached publishes to an exchange and returns the queues that got the message, sorted.
func (r *rig) reached(exchange, key string, options ...option) []string {
	r.t.Helper()
	r.publish(exchange, key, "m", options...)
	names := []string{}
	r.vhost.mu.RLock()
	all := make([]*Queue, 0)
	for _, q := range r.vhost.queues {
		all = append(all, q)
	}
	r.vhost.mu.RUnlock()
	for _, q := range all {
		if n, _ := q.purge(); n > 1 {
			r.t.Errorf("queue %s got the message %d times", q.Name(), n)
		} else if n == 1 {
			names = append(names, q.Name())
		}
	}
	slices.Sort(names)
	return names
}

func (r *rig) wantReached(exchange, key, want string, options ...option) {
	r.t.Helper()
	if got := strings.Join(r.reached(exchange, key, options...), " "); got != want {
		r.t.Errorf("%s with key %q: reached [%s], want [%s]", exchange, key, got, want)
	}
}

func TestDirectAndFanoutAndDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, q := range []string{"a", "b", "c"} {
		r.queue(q, nil)
		r.bind(q, "amq.fanout", q)
	}
	r.bind("a", "amq.direct", "k")
	r.bind("b", "amq.direct", "k")
	r.bind("c", "amq.direct", "other")
	r.wantReached("amq.direct", "k", "a b")
	r.wantReached("amq.direct", "k.x", "")
	r.wantReached("amq.fanout", "anything", "a b c")
	r.wantReached("", "b", "b")
	r.wantReached("", "none", "")
	_, err := r.p.Publish(newMessage("none", "k", "m"))
	wantError(t, err, amqp.NotFound, "no exchange 'none' in vhost '/'")
	_, err = r.p.Publish(newMessage("amq.rabbitmq.trace", "k", "m"))
	wantError(t, err, amqp.AccessRefused, "cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'")
}

func TestTopicPatterns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, pattern := range []string{
		"", "#", "*", "a.b", "a.*", "a.#", "#.b", "*.*", "a.#.b", "#.a.#", "#.#", "*.#", "a.*.b.#", ".", "a.", "*.",
	} {
		r.queue("<"+pattern+">", nil)
		r.bind("<"+pattern+">", "amq.topic", pattern)
	}
	for _, c := range []struct{ key, want string }{
		{"", "<#.#> <#> <>"},
		{"a", "<#.#> <#.a.#> <#> <*.#> <*> <a.#>"},
		{"b", "<#.#> <#.b> <#> <*.#> <*>"},
		{"a.b", "<#.#> <#.a.#> <#.b> <#> <*.#> <*.*> <a.#.b> <a.#> <a.*> <a.b>"},
		{"a.x.b", "<#.#> <#.a.#> <#.b> <#> <*.#> <a.#.b> <a.#> <a.*.b.#>"},
		{"a.x.y.b", "<#.#> <#.a.#> <#.b> <#> <*.#> <a.#.b> <a.#>"},
		{"x.a.y", "<#.#> <#.a.#> <#> <*.#>"},
		{"a.x.b.c", "<#.#> <#.a.#> <#> <*.#> <a.#> <a.*.b.#>"},
		{".", "<#.#> <#> <*.#> <*.*> <*.> <.>"},
		{"a.", "<#.#> <#.a.#> <#> <*.#> <*.*> <*.> <a.#> <a.*> <a.>"},
		{"#", "<#.#> <#> <*.#> <*>"},
		{"A.b", "<#.#> <#.b> <#> <*.#> <*.*>"},
	} {
		r.wantReached("amq.topic", c.key, c.want)
	}
}

func TestTopicOfManyHashesIsNotExponential(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	r.bind("q", "amq.topic", strings.Repeat("#.*.", 60)+"x")
	r.wantReached("amq.topic", strings.Repeat("a.", 120)+"b", "")
	r.wantReached("amq.topic", strings.Repeat("a.", 120)+"x", "q")
}

func TestHeadersExchange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, args := range map[string]amqp.Table{
		"all":        {"x-match": "all", "a": int32(1), "b": "two"},
		"default":    {"a": int32(1), "b": "two"},
		"any":        {"x-match": "any", "a": int32(1), "b": "two"},
		"present":    {"a": nil},
		"with-x":     {"x-match": "all-with-x", "x-a": "1", "a": int32(1)},
		"any-with-x": {"x-match": "any-with-x", "x-a": "1"},
		"without-x":  {"x-match": "all", "x-a": "1", "a": int32(1)},
		"any-no":     {"x-match": "any", "x-a": "1"},
		"nothing":    {},
	} {
		r.queue(name, nil)
		if err := r.QueueBind(Binding{Source: "amq.headers", Destination: name, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		headers amqp.Table
		want    string
	}{
		{nil, "nothing"},
		{amqp.Table{"a": int32(1)}, "any nothing present without-x"},
		{amqp.Table{"a": int64(1)}, "any nothing present without-x"},
		{amqp.Table{"a": "1"}, "nothing present"},
		{amqp.Table{"a": nil}, "nothing present"},
		{amqp.Table{"a": int32(1), "b": "two"}, "all any default nothing present without-x"},
		{amqp.Table{"b": "two"}, "any nothing"},
		{amqp.Table{"x-a": "1"}, "any-with-x nothing"},
		{amqp.Table{"x-a": "1", "a": int8(1)}, "any any-with-x nothing present with-x without-x"},
	} {
		r.wantReached("amq.headers", "", c.want, withHeaders(c.headers))
	}
}

func TestExchangeToExchangeReachesEachQueueOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	r.queue("p", nil)
	for _, x := range []string{"a", "b", "c"} {
		r.exchange(x, "fanout", nil)
	}
	r.bindExchange("b", "a", "")
	r.bindExchange("c", "a", "")
	r.bindExchange("c", "b", "")
	r.bindExchange("a", "c", "") // a circle
	r.bind("q", "a", "")
	r.bind("q", "b", "")
	r.bind("q", "c", "")
	r.bind("p", "c", "")
	r.wantReached("a", "", "p q")
	r.wantReached("c", "", "p q")
}

func TestAlternateExchangeTakesWhatNoBindingTakes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("last", "fanout", nil)
	r.exchange("second", "direct", amqp.Table{"alternate-exchange": "last"})
	r.exchange("first", "direct", amqp.Table{"alternate-exchange": "second"})
	r.exchange("astray", "direct", amqp.Table{"alternate-exchange": "nowhere"})
	r.exchange("circle", "direct", amqp.Table{"alternate-exchange": "circle"})
	for _, q := range []string{"one", "two", "three"} {
		r.queue(q, nil)
	}
	r.bind("one", "first", "1")
	r.bind("two", "second", "2")
	r.bind("three", "last", "")
	r.wantReached("first", "1", "one")
	r.wantReached("first", "2", "two")
	r.wantReached("first", "3", "three")
	r.wantReached("astray", "1", "")
	r.wantReached("circle", "1", "")
	if r.publish("astray", "1", "m").Routed {
		t.Error("routed to an alternate exchange that does not exist")
	}
}

func TestCCAndBCCRouteAndBCCIsNotSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, q := range []string{"a", "b", "c", "d"} {
		r.queue(q, nil)
	}
	r.bind("d", "amq.topic", "x.#")
	headers := amqp.Table{"CC": []any{"b", "x.y"}, "BCC": []any{"c"}, "h": int32(1)}
	r.wantReached("", "a", "a b c", withHeaders(headers))
	r.wantReached("amq.topic", "a", "d", withHeaders(headers))
	r.publish("", "a", "m", withHeaders(headers))
	d, _, _, _ := r.find("c").Get(true)
	got := copyDelivery(&d)
	if _, ok := got.headers["BCC"]; ok || got.headers["h"] != int32(1) || got.headers["CC"] == nil || got.key != "a" {
		t.Errorf("got headers %v, key %q", got.headers, got.key)
	}
	for _, bad := range []amqp.Table{{"CC": "b"}, {"BCC": int32(1)}} {
		_, err := r.p.Publish(newMessage("", "a", "m", withHeaders(bad)))
		wantError(t, err, amqp.PreconditionFailed, "allowed is an array of long strings")
	}
}

func TestManyQueuesAreReachedOnceEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 4 * manyQueues
	for i := range n {
		name := fmt.Sprint("q", i)
		r.queue(name, nil)
		r.bind(name, "amq.topic", "a.#")
		r.bind(name, "amq.topic", "#.b")
	}
	if got := len(r.reached("amq.topic", "a.b")); got != n {
		t.Errorf("reached %d queues, want %d", got, n)
	}
	if got := len(r.reached("amq.topic", "a.c")); got != n {
		t.Errorf("reached %d queues, want %d", got, n)
	}
}

func TestPublisherForgetsRouteWhenTopologyChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exchange("x", "direct", nil)
	r.queue("a", nil)
	r.queue("b", nil)
	r.wantReached("x", "k", "")
	r.bind("a", "x", "k")
	r.wantReached("x", "k", "a")
	r.wantReached("x", "k", "a")
	r.bind("b", "x", "k")
	r.wantReached("x", "k", "a b")
	if err := r.QueueUnbind(Binding{Source: "x", Destination: "a", RoutingKey: "k"}); err != nil {
		t.Fatal(err)
	}
	r.wantReached("x", "k", "b")
	if _, err := r.QueueDelete("b", false, false); err != nil {
		t.Fatal(err)
	}
	r.wantReached("x", "k", "")
	r.wantReached("x", "K", "")
	r.wantReached("", "a", "a")
	r.wantReached("", "a", "a", withHeaders(amqp.Table{"CC": []any{"late"}}))
	r.queue("late", nil)
	r.wantReached("", "a", "a late", withHeaders(amqp.Table{"CC": []any{"late"}}))
	r.wantReached("", "a", "a")
}

func TestUserIDMustBeTheSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.queue("q", nil)
	as := func(user string) option {
		return func(p *amqp.Properties) { p.UserID = []byte(user); p.Set(amqp.FlagUserID) }
	}
	r.publish("", "q", "m", as("guest"))
	_, err := r.p.Publish(newMessage("", "q", "m", as("admin")))
	wantError(t, err, amqp.PreconditionFailed,
		"user_id property set to 'admin' but authenticated user was 'guest'")
}
