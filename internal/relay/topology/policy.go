package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/pattern"
)

// PolicyName is the relay's own policy. It stands above all others, so that none of these acts on
// the relay's queues: a time to live, an expiry or a maximum length there would lose messages.
const PolicyName = "duepost.relay"

const (
	// policyPriority is the highest that RabbitMQ takes. [rmq policies]
	policyPriority = 1<<53 - 1
	policyPattern  = `^duepost\.`
	// unlimited is a delivery limit that is never reached, and that 3.x takes, too.
	unlimited = 1_000_000_000
	overflow  = "reject-publish"
	// consumerTimeout is far longer than a relay keeps anything, in milliseconds.
	consumerTimeout = 3_600_000
)

// definition is what the relay's policy says. What it does not say is as RabbitMQ has it, for no
// other policy is asked. The overflow is there because a policy's wins over an argument.
func definition() map[string]any {
	return map[string]any{"delivery-limit": unlimited, "overflow": overflow}
}

// PolicyCommand sets the relay's policy by hand, where there is no management API.
func PolicyCommand(vhost string) string {
	return fmt.Sprintf(`rabbitmqctl set_policy -p '%s' --priority %d --apply-to queues %s '%s' '{"delivery-limit":%d,"overflow":"%s"}'`,
		vhost, policyPriority, PolicyName, policyPattern, unlimited, overflow)
}

// InstallPolicy sets the relay's policy in a virtual host. The user needs the tag policymaker.
func InstallPolicy(ctx context.Context, api *management.Client, vhost string) error {
	all := definition()
	all["consumer-timeout"] = consumerTimeout
	err := putPolicy(ctx, api, vhost, all)
	var refused *management.Refusal
	if errors.As(err, &refused) && refused.Code == http.StatusBadRequest {
		err = putPolicy(ctx, api, vhost, definition()) // a version that does not know the key
	}
	if err != nil {
		return fmt.Errorf("set policy %q: %w", PolicyName, needsPolicymaker(api, err))
	}
	return nil
}

func putPolicy(ctx context.Context, api *management.Client, vhost string, definition map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"pattern": policyPattern, "priority": policyPriority, "apply-to": "queues", "definition": definition,
	})
	if err != nil {
		return err
	}
	_, err = api.Do(ctx, management.Request{
		Method: http.MethodPut, Path: management.Path("policies", vhost, PolicyName), Body: body,
	})
	return err
}

// needsPolicymaker says what is missing where it was refused.
func needsPolicymaker(api *management.Client, err error) error {
	var refused *management.Refusal
	if errors.As(err, &refused) && (refused.Code == http.StatusUnauthorized || refused.Code == http.StatusForbidden) {
		return fmt.Errorf("user %q needs the tag policymaker: %w", api.User, err)
	}
	return err
}

// Policy is a policy of somebody else that acts on a queue of the relay.
type Policy struct {
	Name     string
	Operator bool   // an operator policy, which no priority outranks
	Queue    string // the first that it acts on
	Pattern  string
	Keys     []string       // of Values, those that count, sorted
	Values   map[string]any // what it sets
}

// String names the culprit.
func (p Policy) String() string {
	kind := "policy"
	if p.Operator {
		kind = "operator policy"
	}
	var sets []string
	for _, key := range p.Keys {
		sets = append(sets, fmt.Sprintf("%s = %v", key, p.Values[key]))
	}
	return fmt.Sprintf("%s %q with pattern %q sets %s on queue %q", kind, p.Name, p.Pattern, strings.Join(sets, ", "), p.Queue)
}

// policy is one as the management API has it.
type policy struct {
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Priority   int64          `json:"priority"`
	Definition map[string]any `json:"definition"`
	compiled   *pattern.Pattern
}

// ForeignPolicies are those that act on queues of the relay, be they there yet or not.
func ForeignPolicies(ctx context.Context, api *management.Client, vhost string) ([]Policy, error) {
	var found []Policy
	for _, operator := range []bool{false, true} {
		all, err := policies(ctx, api, operator, vhost)
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, queue := range Queues() {
			for _, p := range inEffect(all, queue) {
				keys := p.settings(operator)
				if len(keys) == 0 || seen[p.Name] || !operator && p.Name == PolicyName {
					continue
				}
				seen[p.Name] = true
				found = append(found, Policy{p.Name, operator, queue, p.Pattern, keys, p.Definition})
			}
		}
	}
	return found, nil
}

// policies reads the policies of a virtual host that are for queues.
func policies(ctx context.Context, api *management.Client, operator bool, vhost string) ([]policy, error) {
	kind := "policies"
	if operator {
		kind = "operator-policies"
	}
	var all []policy
	err := ask(ctx, api, kind+"/"+management.Path(vhost), &all)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", kind, needsPolicymaker(api, err))
	}
	forQueues := all[:0]
	for _, p := range all {
		if p.compiled, err = pattern.Compile(p.Pattern); err != nil {
			return nil, fmt.Errorf("look at %s: pattern of %q: %w", kind, p.Name, err)
		}
		if p.ApplyTo != "exchanges" && p.ApplyTo != "streams" {
			forQueues = append(forQueues, p)
		}
	}
	return forQueues, nil
}

// inEffect are those with the highest priority of all that match. Where two have it versions differ in
// which of them they take: 4.3 the older one, 3.10 the other.
func inEffect(all []policy, queue string) (first []policy) {
	for _, p := range all {
		switch {
		case !p.compiled.Matches(queue):
		case len(first) == 0 || p.Priority > first[0].Priority:
			first = append(first[:0], p)
		case p.Priority == first[0].Priority:
			first = append(first, p)
		}
	}
	return first
}

// settings are the keys of a policy that change what a relay relies on, sorted.
func (p policy) settings(operator bool) (keys []string) {
	for key := range p.Definition {
		if !operator || !isHarmless(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// isHarmless reports whether a key of an operator policy loses nothing.
func isHarmless(key string) bool {
	return strings.HasPrefix(key, "ha-") || strings.HasPrefix(key, "max-in-memory-") ||
		key == "target-group-size" || key == "consumer-timeout"
}

// Queues are the names of all queues that a relay may have.
func Queues() []string {
	all := []string{Intake, Rescue, Parked}
	for level := range Fine + 1 {
		for index := range Ring {
			all = append(all, WheelQueue(level, index))
		}
	}
	return all
}
