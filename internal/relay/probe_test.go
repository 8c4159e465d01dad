//go:build relay

package relay

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/testbroker"
)

// TestInterceptor: where RabbitMQ notes when it accepts a message the relay knows, and a delay starts
// then, though no relay runs.
func TestInterceptor(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *testbroker.Broker) { checkInterceptor(t, b, false) })
	on := testbroker.Options{Config: "message_interceptors.incoming.set_header_timestamp.overwrite = true\n"}
	onSome(t, "4.3", on, func(t *testing.T, b *testbroker.Broker) { checkInterceptor(t, b, true) })
}

func checkInterceptor(t *testing.T, b *testbroker.Broker, on bool) {
	const delay = 15 * time.Second
	c := newClient(t, b.URL())
	accepted := time.Now()
	c.publish("x", "k", amqp.Publishing{Headers: amqp.Table{"x-delay": delay.Milliseconds()}})
	<-time.After(5 * time.Second)
	began := time.Now()
	r, _ := startRelay(t, b.URL())
	if r.IsStamping() != on {
		t.Errorf("the interceptor is taken for %v, want %v", r.IsStamping(), on)
	}
	c.get("q")
	if on {
		began = began.Add(-5 * time.Second) // and so it waits from then
	}
	if took := time.Since(began); took < delay || on && took > delay+4*time.Second {
		t.Errorf("it came %v after its acceptance, which counts: %v", time.Since(accepted), on)
	}
}
