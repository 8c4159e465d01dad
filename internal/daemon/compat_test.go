package daemon

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The settings for those who depend on others' ways reach the broker.
func TestCompatSettingsAreInForce(t *testing.T) {
	t.Parallel()
	for _, compat := range []bool{false, true} {
		cfg := testConfig(t)
		if compat {
			cfg.DelayedCompat, cfg.ClientXDeath = "plugin", "continue"
		}
		ch := mustChannel(t, mustStart(t, cfg))
		declare(t, ch)
		if got := isReturned(t, ch); got != compat {
			t.Errorf("compat %v: a delayed message was returned: %v", compat, got)
		}
		if got := deathCount(t, ch); (got == 42) != compat {
			t.Errorf("compat %v: got %d deaths where the publisher said 41", compat, got)
		}
	}
}

// isReturned publishes a delayed mandatory message and reports whether it is said to be unroutable.
func isReturned(t *testing.T, ch *amqp.Channel) bool {
	t.Helper()
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	m := amqp.Publishing{Headers: amqp.Table{"x-delay": int32(3_600_000)}}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "due", "kept", true, false, m)
	if err != nil {
		t.Fatal(err)
	}
	if acked, err := confirm.WaitContext(t.Context()); err != nil || !acked {
		t.Fatalf("confirm: %v, %v", acked, err)
	}
	return len(returned) > 0 // it comes before the confirm
}

// deathCount dead-letters a message whose publisher says that this has happened 41 times.
func deathCount(t *testing.T, ch *amqp.Channel) int64 {
	t.Helper()
	args := amqp.Table{"x-message-ttl": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
	for queue, args := range map[string]amqp.Table{"dies": args, "dead": nil} {
		if _, err := ch.QueueDeclare(queue, false, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, ch, "", "dies", amqp.Table{
		"x-death": []any{amqp.Table{"count": int64(41), "queue": "dies", "reason": "expired"}},
	}, "m")
	deliveries, err := ch.Consume("dead", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-deliveries:
		deaths, _ := d.Headers["x-death"].([]any)
		if len(deaths) == 0 {
			t.Fatal("no x-death")
		}
		n, _ := deaths[0].(amqp.Table)["count"].(int64)
		return n
	case <-time.After(patience):
		t.Fatalf("no message after %v", patience)
		return 0
	}
}
