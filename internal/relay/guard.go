package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay/topology"
)

// lookEvery is how often the policies are looked at while a relay works.
const lookEvery = 30 * time.Second

// ForeignPolicyError says which policies of others act on queues of the relay, where they would lose
// messages.
type ForeignPolicyError struct{ Policies []topology.Policy }

// Error names them.
func (e *ForeignPolicyError) Error() string {
	var all []string
	for _, p := range e.Policies {
		all = append(all, p.String())
	}
	return "check policies: " + strings.Join(all, "; ") + ": it would lose messages, take it away or exclude " + topology.Prefix
}

// guard sees to it that no policy of others acts on the relay's queues.
type guard struct {
	api   *management.Client // nil if nobody can be asked
	vhost string
}

// Management is the API at a URL in which {host} stands for a node, as the user of the node; nil without
// a URL.
func Management(node amqp.URI, url string) *management.Client {
	if url == "" {
		return nil
	}
	host := node.Host
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return &management.Client{
		URL: strings.ReplaceAll(url, "{host}", host), User: node.Username, Password: node.Password,
	}
}

// check sets the relay's policy, which outranks all of users, and looks for those that it does not
// outrank.
func (g guard) check(ctx context.Context) error {
	if g.api == nil {
		return nil
	}
	if err := topology.InstallPolicy(ctx, g.api, g.vhost); err != nil {
		return fmt.Errorf("%w (by hand: %s)", err, topology.PolicyCommand(g.vhost))
	}
	found, err := topology.ForeignPolicies(ctx, g.api, g.vhost)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return &ForeignPolicyError{found}
	}
	return nil
}

// look is check and a look for bindings that lead past the delay.
func (g guard) look(ctx context.Context) error {
	if err := g.check(ctx); err != nil || g.api == nil {
		return err
	}
	found, err := topology.ForeignBindings(ctx, g.api, g.vhost)
	if err != nil {
		return err
	}
	var all []error
	for _, b := range found {
		all = append(all, fmt.Errorf("%s leads past the delay: duepost relay exchange move-bindings %s", b, b.Source))
	}
	return errors.Join(all...)
}

// watch looks again and again, and tells what changes. The relay goes on: what waits is in the queues
// already, and the intake is safer with somebody who consumes it.
func (s *session) watch(ctx context.Context) error {
	look := time.NewTicker(s.r.lookEvery)
	defer look.Stop()
	last := ""
	for {
		err := errors.Join(s.guard.look(ctx), s.repair(ctx))
		if ctx.Err() != nil {
			return nil
		}
		now := ""
		if err != nil {
			now = err.Error()
		}
		s.r.setAlarm(now)
		switch {
		case now == last:
		case err != nil:
			s.r.log.Error("messages are in danger", "err", err)
		default:
			s.r.log.Info("messages are safe again")
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// repair puts back what somebody has taken away, as far as it can be.
func (s *session) repair(ctx context.Context) error {
	if s.guard.api == nil {
		return nil
	}
	names, err := topology.Repair(ctx, s.consuming, s.guard.api, s.guard.vhost)
	if len(names) > 0 {
		s.r.log.Error("the bindings of delayed exchanges to the intake were gone, and messages went past their delay",
			"exchanges", names)
	}
	return err
}
