package main

import (
	"fmt"
	"net/http"

	amqp "github.com/rabbitmq/amqp091-go"
)

// accessRules are about who may do what.
func accessRules() []rule {
	publish := func(x, key string) func(*channel) error {
		return func(c *channel) error { return c.PublishWithContext(c.p.ctx, x, key, false, false, amqp.Publishing{}) }
	}
	steps := []struct {
		name string
		do   func(*channel) error
	}{
		{"declare a queue", func(c *channel) error { _, err := c.QueueDeclare("new", false, false, false, false, nil); return err }},
		{"passive", func(c *channel) error {
			_, err := c.QueueDeclarePassive("q", false, false, false, false, nil)
			return err
		}},
		{"declare an exchange", func(c *channel) error {
			return c.ExchangeDeclare("new", "direct", false, false, false, false, nil)
		}},
		{"delete a queue", func(c *channel) error { _, err := c.QueueDelete("q", false, false, false); return err }},
		{"delete an exchange", func(c *channel) error { return c.ExchangeDelete("x", false, false) }},
		{"bind", func(c *channel) error { return c.QueueBind("q", "k", "x", false, nil) }},
		{"unbind", func(c *channel) error { return c.QueueUnbind("q", "k", "x", nil) }},
		{"bind exchanges", func(c *channel) error { return c.ExchangeBind("x", "k", "x", false, nil) }},
		{"publish", publish("x", "k")},
		{"publish to the default exchange", publish("", "q")},
		{"get", func(c *channel) error { _, _, err := c.Get("q", true); return err }},
		{"consume", func(c *channel) error { _, err := c.Consume("q", "", false, false, false, false, nil); return err }},
		{"purge", func(c *channel) error { _, err := c.QueuePurge("q", false); return err }},
		{"dead-letter exchange", func(c *channel) error {
			_, err := c.QueueDeclare("own", false, false, false, false, amqp.Table{"x-dead-letter-exchange": "x"})
			return err
		}},
		{"alternate exchange", func(c *channel) error {
			return c.ExchangeDeclare("own", "direct", false, false, false, false, amqp.Table{"alternate-exchange": "x"})
		}},
	}
	// with notes what a user with these rights may do.
	with := func(configure, write, read string) func(*probe) {
		return func(p *probe) {
			vhost, user := p.vhost("v"), p.user("u", "")
			p.grant(user, vhost, configure, write, read)
			owner := p.channelAs(guest(), vhost)
			_, err := owner.QueueDeclare("q", false, false, false, false, nil)
			p.must(err)
			p.must(owner.ExchangeDeclare("x", "direct", false, false, false, false, nil))
			for _, s := range steps {
				p.note(s.name, "%s", p.channelAs(user, vhost).outcome(s.do))
			}
		}
	}
	return []rule{
		{"permissions: none at all", with("", "", "")},
		{"permissions: configure", with("^own$", "", "")},
		{"permissions: configure and read", with("^own$", "", ".*")},
		{"permissions: write", with("", "^(x|amq.default)$", "")},
		{"permissions: read", with("", "", "^q$")},
		{"permissions: part of a name matches", with("", "", "q")},
		{"permissions: none for the virtual host", func(p *probe) {
			_, err := p.dial(p.user("u", ""), "/")
			p.note("open", "%v", err)
		}},
		{"permissions: guest is as any other", func(p *probe) {
			vhost := p.name("v")
			p.put("/api/vhosts/"+vhost, nil)
			p.remove("/api/permissions/" + vhost + "/guest")
			_, err := p.dial(guest(), vhost)
			p.note("open", "%v", err)
		}},
		{"topic permissions", func(p *probe) {
			vhost, user := p.vhost("v"), p.user("u", "")
			p.grant(user, vhost, ".*", ".*", ".*")
			p.put("/api/topic-permissions/"+vhost+"/"+user.user,
				map[string]string{"exchange": "amq.topic", "write": "^a", "read": "^{username}-{vhost}"})
			p.note("publish", "%s", p.channelAs(user, vhost).outcome(publish("amq.topic", "a.b")))
			p.note("publish, no right", "%s", p.channelAs(user, vhost).outcome(publish("amq.topic", "b.a")))
			p.note("publish elsewhere", "%s", p.channelAs(user, vhost).outcome(publish("amq.direct", "b.a")))
			bind := func(key string) func(*channel) error {
				return func(c *channel) error {
					if _, err := c.QueueDeclare("q", false, false, false, false, nil); err != nil {
						return err
					}
					return c.QueueBind("q", key, "amq.topic", false, nil)
				}
			}
			p.note("bind, no right", "%s", p.channelAs(user, vhost).outcome(bind("x")))
			p.note("bind", "%s", p.channelAs(user, vhost).outcome(bind(user.user+"-"+vhost)))
		}},
		{"user-id and impersonator", func(p *probe) {
			user := p.user("u", "impersonator")
			p.grant(user, "/", ".*", ".*", ".*")
			p.note("publish", "%s", p.channelAs(user, "/").outcome(func(c *channel) error {
				return c.PublishWithContext(p.ctx, "", "q", false, false, amqp.Publishing{UserId: "guest"})
			}))
		}},
		{"a deleted user", func(p *probe) {
			user := p.user("u", "")
			p.grant(user, "/", ".*", ".*", ".*")
			c := p.channelAs(user, "/")
			closed := c.conn.NotifyClose(make(chan *amqp.Error, 1))
			p.remove("/api/users/" + user.user)
			p.note("connection", "%v", <-closed)
			_, err := p.dial(user, "/")
			p.note("again", "%v", err)
		}},
		{"a deleted virtual host", func(p *probe) {
			vhost := p.name("v")
			p.put("/api/vhosts/"+vhost, nil)
			c := p.channelAs(guest(), vhost)
			closed := c.conn.NotifyClose(make(chan *amqp.Error, 1))
			p.remove("/api/vhosts/" + vhost)
			p.note("connection", "%d", (<-closed).Code) // RabbitMQ has two texts and uses either
		}},
		{"a connection closed over the API", func(p *probe) {
			user := p.user("u", "")
			p.grant(user, "/", ".*", ".*", ".*")
			c := p.channelAs(user, "/")
			closed := c.conn.NotifyClose(make(chan *amqp.Error, 1))
			p.eventually(func() bool {
				p.api(http.MethodDelete, "/api/connections/username/"+user.user, nil)
				return len(closed) > 0
			})
			p.note("connection", "%v", <-closed)
		}},
		{"limits of a virtual host", func(p *probe) {
			vhost := p.vhost("v")
			p.put("/api/vhost-limits/"+vhost+"/max-queues", map[string]int{"value": 1})
			declare := func(name string) func(*channel) error {
				return func(c *channel) error { _, err := c.QueueDeclare(name, false, false, false, false, nil); return err }
			}
			p.note("first", "%s", p.channelAs(guest(), vhost).outcome(declare("a")))
			p.note("second", "%s", p.channelAs(guest(), vhost).outcome(declare("b")))
			p.put("/api/vhost-limits/"+vhost+"/max-connections", map[string]int{"value": 0})
			_, err := p.dial(guest(), vhost)
			p.note("connection", "%v", err)
		}},
		{"limits of a user", func(p *probe) {
			u := p.user("u", "management")
			p.grant(u, "/", ".*", ".*", ".*")
			limits := "/api/user-limits/" + u.user
			show := func(label string) {
				p.note(label, "%s", p.api(http.MethodGet, limits, nil).show())
				p.note(label+", of the user", "%s", p.api(http.MethodGet, "/api/users/"+u.user, nil).field("limits"))
			}
			show("none")
			for _, ask := range []struct {
				method, path string
				body         any
			}{
				{http.MethodPut, "/max-connections", object{"value": 2}},
				{http.MethodPut, "/max-channels", object{"value": 1}},
				{http.MethodPut, "/max-queues", object{"value": 1}},
				{http.MethodPut, "/max-channels", object{"value": "a"}},
				{http.MethodPut, "/max-channels", object{}},
			} {
				p.note(ask.method+" "+ask.path+" "+fmt.Sprint(ask.body), "%s", p.api(ask.method, limits+ask.path, ask.body).show())
			}
			show("set")
			for _, path := range []string{"/api/user-limits/" + p.name("nobody"), "/api/users/" + p.name("nobody")} {
				p.note(path, "%s", p.api(http.MethodGet, path, nil).show())
			}
			p.note("nobody's", "%s", p.api(http.MethodPut, "/api/user-limits/"+p.name("nobody")+"/max-channels", object{"value": 1}).show())
			mine, err := p.b.call(p.ctx, u, http.MethodGet, limits, nil)
			p.must(err)
			p.note("asked by the user", "%s", mine.show())

			first, err := p.dial(u, "/")
			p.must(err)
			_, err = first.Channel()
			p.must(err)
			_, err = first.Channel()
			p.note("a second channel", "%v", err)
			_, err = p.dial(u, "/")
			p.must(err)
			_, err = p.dial(u, "/")
			p.note("a third connection", "%v", err)
			p.note("DELETE", "%s", p.api(http.MethodDelete, limits+"/max-connections", nil).show())
			p.note("DELETE again", "%s", p.api(http.MethodDelete, limits+"/max-connections", nil).show())
			show("one deleted")
			p.put(limits+"/max-channels", object{"value": -1})
			show("no limit")
			p.put(limits+"/max-connections", object{"value": 0})
			_, err = p.dial(u, "/")
			p.note("a connection where there may be none", "%v", err)
		}},
	}
}
