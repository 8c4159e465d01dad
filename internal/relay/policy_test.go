//go:build relay

package relay

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/testbroker"
)

// administrator changes policies of a broker as its users do.
type administrator struct {
	*testing.T
	management.Client
}

func newAdministrator(t *testing.T, b *testbroker.Broker) *administrator {
	return &administrator{t, management.Client{URL: "http://" + b.HTTPAddr, User: "guest", Password: "guest"}}
}

func (a *administrator) ask(method, path string, body any) {
	a.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		a.Fatal(err)
	}
	if _, err := a.Do(a.Context(), management.Request{Method: method, Path: path, Body: text}); err != nil {
		a.Fatal(err)
	}
}

func (a *administrator) setPolicy(kind, name string, priority int64, definition map[string]any) {
	a.Helper()
	a.ask(http.MethodPut, kind+"/"+management.Path("/", name), map[string]any{
		"pattern": ".*", "priority": priority, "apply-to": "queues", "definition": definition})
}

// TestPoliciesOfOthers: a user's policy for all queues does nothing to what waits, and one that cannot be
// outranked keeps the relay from starting, by name.
func TestPoliciesOfOthers(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Management: true}, func(t *testing.T, b *testbroker.Broker) {
		a := newAdministrator(t, b)
		a.setPolicy("policies", "all", 1000, map[string]any{"message-ttl": 300, "max-length": 3})
		r, stop := startRelayWith(t, Config{URLs: []string{b.URL()}, Management: a.URL})
		c := newClient(t, b.URL())
		a.ask(http.MethodDelete, "policies/"+management.Path("/", "all"), nil) // not from "q"
		a.setPolicy("policies", "all", 1000, map[string]any{"expires": 60_000, "overflow": "drop-head"})
		c.burst(0, 200, 2*time.Second, 4*time.Second)
		if sum := collect(t, b.URL(), 0, 200, 20*time.Second); sum.missing > 0 || sum.early > 0 {
			t.Errorf("under a policy of a user: %+v, want none missing", sum)
		}
		if alarm := r.Alarm(); alarm != "" {
			t.Errorf("alarm %q for a policy that is outranked", alarm)
		}
		stop()

		for kind, priority := range map[string]int64{"operator-policies": 0, "policies": 1<<53 - 1} {
			a.setPolicy(kind, "culprit", priority, map[string]any{"message-ttl": 1500})
			var foreign *ForeignPolicyError
			err := New(Config{URLs: []string{b.URL()}, Management: a.URL}).Run(t.Context())
			if !errors.As(err, &foreign) || len(foreign.Policies) != 1 {
				t.Fatalf("with one of %s: %v, want a refusal to start", kind, err)
			}
			p := foreign.Policies[0]
			if p.Name != "culprit" || p.Operator != (kind == "operator-policies") || p.Queue != topology.Intake {
				t.Errorf("the culprit is %+v", p)
			}
			if text := err.Error(); !strings.Contains(text, `"culprit"`) || !strings.Contains(text, "message-ttl = 1500") {
				t.Errorf("the error is %q, want it to name the policy and what it sets", text)
			}
			a.ask(http.MethodDelete, kind+"/"+management.Path("/", "culprit"), nil)
		}
	})
}

// TestPolicyWhileRunning: a policy that endangers what waits is told while it is there.
func TestPolicyWhileRunning(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Management: true}, func(t *testing.T, b *testbroker.Broker) {
		a := newAdministrator(t, b)
		r, _ := startRelayWith(t, Config{URLs: []string{b.URL()}, Management: a.URL})
		a.setPolicy("operator-policies", "culprit", 0, map[string]any{"expires": 7_200_000})
		r.await(t, func(alarm string) bool { return strings.Contains(alarm, `"culprit"`) })
		a.ask(http.MethodDelete, "operator-policies/"+management.Path("/", "culprit"), nil)
		r.await(t, func(alarm string) bool { return alarm == "" })
		a.ask(http.MethodDelete, "policies/"+management.Path("/", topology.PolicyName), nil)
		r.await(t, func(string) bool {
			_, err := a.Do(t.Context(), management.Request{Method: http.MethodGet, Path: "policies/" + management.Path("/", topology.PolicyName)})
			return err == nil // and is there again
		})
	})
}

// TestPolicyIsNotPermitted: a user without the tag policymaker is told what is missing.
func TestPolicyIsNotPermitted(t *testing.T) {
	t.Parallel()
	onEachWith(t, testbroker.Options{Management: true}, func(t *testing.T, b *testbroker.Broker) {
		a := newAdministrator(t, b)
		a.ask(http.MethodPut, "users/r", map[string]any{"password": "r", "tags": "management"})
		a.ask(http.MethodPut, "permissions/"+management.Path("/", "r"), map[string]any{"configure": ".*", "write": ".*", "read": ".*"})
		err := New(Config{URLs: []string{"amqp://r:r@" + b.AMQPAddr + "/"}, Management: a.URL}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), `user "r" needs the tag policymaker`) || !strings.Contains(err.Error(), "rabbitmqctl set_policy") {
			t.Errorf("the error is %v, want it to name the tag and a way without", err)
		}
	})
}
