package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettingsAreCheckedAsRabbitMQDoes has what RabbitMQ 3.10 answers, save where 4 takes more.
func TestSettingsAreCheckedAsRabbitMQDoes(t *testing.T) {
	t.Parallel()
	const unknown = " are not recognised policy settings"
	for _, tt := range []struct {
		d    Definition
		want string // "" is valid
	}{
		{Definition{}, "no policy provided"},
		{nil, "no policy provided"},
		{Definition{"alternate-exchange": "a b/ä"}, ""},
		{Definition{"alternate-exchange": int64(1)}, "1 is not a valid alternate exchange name"},
		{Definition{"dead-letter-exchange": ""}, ""},
		{Definition{"dead-letter-exchange": int64(1)}, "1 is not a valid dead letter exchange name"},
		{Definition{"dead-letter-routing-key": "k"}, ""},
		{Definition{"dead-letter-routing-key": true}, "true is not a valid dead letter routing key"},
		{Definition{"dead-letter-strategy": "at-least-once"}, ""},
		{Definition{"dead-letter-strategy": "x"}, `<<"x">> is not a valid dead letter strategy`},
		{Definition{"message-ttl": int64(0)}, ""},
		{Definition{"message-ttl": int64(9999999999999)}, ""},
		{Definition{"message-ttl": int64(-1)}, "-1 is not a valid message TTL"},
		{Definition{"message-ttl": 1.5}, "1.5 is not a valid message TTL"},
		{Definition{"message-ttl": 1e3}, "1000.0 is not a valid message TTL"},
		{Definition{"message-ttl": 1e30}, "1.0e30 is not a valid message TTL"},
		{Definition{"message-ttl": "a\"b\n"}, `<<"a\"b\n">> is not a valid message TTL`},
		{Definition{"message-ttl": "ä"}, `<<"ä">> is not a valid message TTL`},
		{Definition{"message-ttl": nil}, "null is not a valid message TTL"},
		{Definition{"message-ttl": []any{int64(1), "x", nil, 1.0}}, `[1,<<"x">>,null,1.0] is not a valid message TTL`},
		{Definition{"message-ttl": map[string]any{"a": int64(1)}}, `#{<<"a">> => 1} is not a valid message TTL`},
		{Definition{"expires": int64(1)}, ""},
		{Definition{"expires": int64(0)}, "0 is not a valid queue expiry"},
		{Definition{"max-length": int64(0)}, ""},
		{Definition{"max-length": int64(-1)}, "-1 is not a valid maximum length"},
		{Definition{"max-length-bytes": "1"}, `<<"1">> is not a valid maximum length in bytes`},
		{Definition{"max-in-memory-length": int64(-1)}, "-1 is not a valid maximum memory in bytes"},
		{Definition{"max-in-memory-bytes": int64(-1)}, "-1 is not a valid maximum memory in bytes"},
		{Definition{"delivery-limit": int64(-1)}, ""}, // 4: no limit
		{Definition{"delivery-limit": "x"}, `<<"x">> is not a valid delivery limit`},
		{Definition{"overflow": "reject-publish-dlx"}, ""},
		{Definition{"overflow": int64(1)}, "1 is not a valid overflow value"},
		{Definition{"queue-mode": "lazy"}, ""},
		{Definition{"queue-mode": "x"}, `<<"x">> is not a valid queue-mode value`},
		{Definition{"queue-version": int64(2)}, ""},
		{Definition{"queue-version": int64(3)}, "3 is not a valid queue-version value"},
		{Definition{"queue-leader-locator": "x"}, `<<"x">> is not a valid queue leader locator value`},
		{Definition{"queue-master-locator": "x"}, `<<"x">> invalid queue-master-locator value`},
		{Definition{"max-age": "12D"}, ""},
		{Definition{"max-age": "0D"}, `<<"0D">> is not a valid max age`},
		{Definition{"max-age": "1X"}, `<<"1X">> is not a valid max age`},
		{Definition{"consumer-timeout": int64(0)}, ""},
		{Definition{"consumer-timeout": int64(-1)}, "-1 is not a valid consumer timeout"},
		{Definition{"delayed-retry-type": "all", "delayed-retry-min": int64(1)}, ""},
		{Definition{"delayed-retry-type": "disabled"}, ""},
		{Definition{"delayed-retry-type": "all"}, "delayed-retry-min is required when delayed-retry-type is all"},
		{Definition{"delayed-retry-min": int64(2), "delayed-retry-max": int64(1)},
			"delayed-retry-max (1) must not be smaller than delayed-retry-min (2)"},
		{Definition{"ha-mode": "all"}, ""},
		{Definition{"ha-mode": "all", "ha-sync-mode": "automatic", "ha-sync-batch-size": int64(5),
			"ha-promote-on-shutdown": "always", "ha-promote-on-failure": "when-synced"}, ""},
		{Definition{"ha-mode": "foo"}, `<<"foo">> is not a valid ha-mode value`},
		{Definition{"ha-mode": "all", "ha-params": int64(1)}, `ha-mode="all" does not take parameters`},
		{Definition{"ha-mode": "exactly", "ha-params": int64(2)}, ""},
		{Definition{"ha-mode": "exactly"}, `ha-mode="exactly" takes an integer, none given`},
		{Definition{"ha-mode": "exactly", "ha-params": int64(0)}, `ha-mode="exactly" takes an integer, 0 given`},
		{Definition{"ha-mode": "nodes", "ha-params": []any{"a"}}, ""},
		{Definition{"ha-mode": "nodes"}, `ha-mode="nodes" takes a list, none given`},
		{Definition{"ha-mode": "nodes", "ha-params": []any{}}, `ha-mode="nodes" list must be non-empty`},
		{Definition{"ha-mode": "nodes", "ha-params": []any{int64(1)}},
			`ha-mode="nodes" takes a list of strings, [1] was not a string`},
		{Definition{"ha-sync-mode": "automatic"},
			"ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"},
		{Definition{"ha-mode": "all", "ha-sync-mode": "x"},
			`ha-sync-mode must be "manual" or "automatic", got <<"x">>`},
		{Definition{"ha-mode": "all", "ha-sync-batch-size": int64(0)},
			"ha-sync-batch-size takes an integer greater than 0, 0 given"},
		{Definition{"foo": int64(1), "bar": "x", "message-ttl": int64(1)},
			`[{<<"bar">>,<<"x">>},{<<"foo">>,1}]` + unknown},
		{Definition{"foo": int64(1), "message-ttl": int64(-1)}, "-1 is not a valid message TTL"},
		{Definition{"message-ttl": int64(-1), "max-length": "s"}, `<<"s">> is not a valid maximum length`},
		{Definition{"federation-upstream-set": "all"}, `[{<<"federation-upstream-set">>,<<"all">>}]` + unknown},
	} {
		got := ""
		if err := (&Policy{Pattern: "x", Definition: tt.d}).Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.d, got, tt.want)
		}
	}
}

// TestOwnSettingsSayWhatIsAllowed: nobody can look these up in RabbitMQ's documentation.
func TestOwnSettingsSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	wrong := map[string][]any{
		"dead-letter-unroutable": {"lose", int64(1)}, "delayed-compat": {"both", true}, "delayed-late": {"never", int64(1)},
		"delayed-unroutable": {"lose", nil}, "delayed-dead-letter-exchange": {int64(1), true},
		"delayed-late-after": {int64(-1), "5", 1.5}, "delayed-max-length": {int64(-1), "5"}, "delayed-max-length-bytes": {int64(-1), 1.5},
	}
	for _, s := range own() {
		if len(wrong[s.name]) == 0 {
			t.Errorf("%s: no value is tried", s.name)
		}
		for _, v := range wrong[s.name] {
			p := Policy{Name: "p", Pattern: ".*", Definition: Definition{s.name: v}}
			var texts []string
			for fault := range p.Faults() {
				texts = append(texts, fault.Text)
			}
			start := term(v) + " is not a valid " + s.name + ". Must be "
			if len(texts) != 1 || !strings.HasPrefix(texts[0], start) {
				t.Errorf("%s %v: got %q, want one fault that begins %q", s.name, v, texts, start)
			}
		}
	}
}

func TestFaultSaysWhatPart(t *testing.T) {
	t.Parallel()
	ttl := Definition{"message-ttl": int64(1)}
	for _, tt := range []struct {
		p    Policy
		want Fault
	}{
		{Policy{Pattern: "(", Definition: ttl}, Fault{Part: "pattern",
			Text: "pattern should be regular expression but is invalid: missing closing ) in `(`"}},
		{Policy{Name: strings.Repeat("n", 256), Pattern: "x", Definition: ttl},
			Fault{Part: "name", Text: "name has 256 bytes, 255 are allowed"}},
		{Policy{Pattern: "x", ApplyTo: "foo", Definition: ttl}, Fault{Part: "apply-to",
			Text: "apply-to 'foo' unrecognised; should be one of: 'queues', 'classic_queues', " +
				"'quorum_queues', 'streams', 'exchanges', or 'all'"}},
		{Policy{Pattern: "x", ApplyTo: All, Definition: Definition{"expires": int64(0)}},
			Fault{Part: "definition", Key: "expires", Text: "0 is not a valid queue expiry"}},
	} {
		var got *Fault
		if err := tt.p.Validate(); !errors.As(err, &got) || *got != tt.want {
			t.Errorf("%+v: got %+v, want %+v", tt.p, got, tt.want)
		}
	}
}

func TestOperatorPolicyHasFewerSettings(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]any{
		"expires": int64(1), "message-ttl": int64(1), "max-length": int64(1), "max-length-bytes": int64(1),
		"max-in-memory-length": int64(1), "max-in-memory-bytes": int64(1), "delivery-limit": int64(1),
		"overflow": "drop-head", // since 3.12
	} {
		p := Policy{Pattern: "x", Definition: Definition{key: value}}
		if err := p.ValidateOperator(); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for key, value := range map[string]any{
		"dead-letter-exchange": "x", "alternate-exchange": "x", "queue-mode": "lazy", "max-age": "1D",
		"message-ttl": int64(-1),
	} {
		p := Policy{Pattern: "x", Definition: Definition{key: value}}
		if err := p.ValidateOperator(); err == nil {
			t.Errorf("%s: accepted", key)
		}
	}
}

func TestOperatorPolicyHoldsNumbersDown(t *testing.T) {
	t.Parallel()
	user := &Policy{Definition: Definition{"message-ttl": int64(10), "max-length": int64(5),
		"dead-letter-exchange": "x", "overflow": "reject-publish", "delivery-limit": int64(-1)}}
	operator := &Policy{Definition: Definition{"message-ttl": int64(20), "max-length": int64(3),
		"expires": int64(7), "overflow": "drop-head", "delivery-limit": int64(4)}}
	want := Definition{"message-ttl": int64(10), "max-length": int64(3), "expires": int64(7),
		"dead-letter-exchange": "x", "overflow": "drop-head", "delivery-limit": int64(4)}
	if diff := cmp.Diff(want, Merge(user, operator)); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
	if len(user.Definition) != 5 {
		t.Error("Merge changed the policy")
	}
	if diff := cmp.Diff(user.Definition, Merge(user, nil)); diff != "" {
		t.Errorf("policy alone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(operator.Definition, Merge(nil, operator)); diff != "" {
		t.Errorf("operator policy alone (-want +got):\n%s", diff)
	}
	if got := Merge(nil, nil); got != nil {
		t.Errorf("none: got %v", got)
	}
}
