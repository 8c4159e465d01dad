package relay

import (
	"context"
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

// newGuard asks the management API of a node, whose URL may have {host} in it.
func newGuard(uri amqp.URI, url string) guard {
	if url == "" {
		return guard{vhost: uri.Vhost}
	}
	host := uri.Host
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	url = strings.ReplaceAll(url, "{host}", host)
	return guard{&management.Client{URL: url, User: uri.Username, Password: uri.Password}, uri.Vhost}
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

// watchPolicies looks again and again, and tells what changes. The relay goes on: what waits is in the queues
// already, and the intake is safer with somebody who consumes it.
func (s *session) watchPolicies(ctx context.Context) error {
	look := time.NewTicker(s.r.lookEvery)
	defer look.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		err := s.guard.check(ctx)
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
			s.r.log.Error("queues of the relay are in danger", "err", err)
		default:
			s.r.log.Info("queues of the relay are safe again")
		}
		last = now
	}
}
