package testbroker_test

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/testbroker"
)

// TestRabbitMQ starts, kills and stops one, asks its tool, and finds in it what was there before.
func TestRabbitMQ(t *testing.T) {
	t.Parallel()
	b := testbroker.StartRabbitMQ(t, testbroker.Options{Management: true, Config: "channel_max = 7\n"})
	declare(t, b, false)
	out, err := b.Control(t.Context(), "list_queues", "name")
	if err != nil || !strings.Contains(out, "kept") {
		t.Errorf("list_queues: %v, want the queue in:\n%s", err, out)
	}
	if _, err := b.Control(t.Context(), "no_such_command"); err == nil {
		t.Error("a command that does not exist has no error")
	}
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if conn, err := amqp.Dial(b.URL()); err == nil {
		conn.Close()
		t.Error("a killed broker accepts connections")
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	declare(t, b, true)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if b.PID() != 0 || b.Stop() != nil || b.Kill() != nil {
		t.Error("a stopped broker still has a process, or cannot be stopped again")
	}
}

// declare declares a durable queue, or looks that it is there, over a connection that got what the
// configuration says.
func declare(t *testing.T, b *testbroker.Broker, passive bool) {
	t.Helper()
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if conn.Config.ChannelMax != 7 {
		t.Errorf("channel_max: got %d, want the 7 of the configuration", conn.Config.ChannelMax)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	how := ch.QueueDeclare
	if passive {
		how = ch.QueueDeclarePassive
	}
	if _, err := how("kept", true, false, false, false, nil); err != nil {
		t.Error(err)
	}
}

// TestDuepost does the same with Duepost, which has no tool of its own for it.
func TestDuepost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, err := testbroker.BuildDuepost(t.Context(), "", dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := testbroker.StartDuepost(t.Context(), program, testbroker.Options{
		Dir: dir, Management: true, Args: []string{"--channel-max", "7"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Kill() })
	declare(t, b, false)
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	declare(t, b, true)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Control(t.Context(), "status"); err == nil {
		t.Error("control has no error where there is no tool")
	}
}

// TestStartFails says why a broker did not start.
func TestStartFails(t *testing.T) {
	t.Parallel()
	_, err := testbroker.StartDuepost(t.Context(), "duepost-that-is-nowhere", testbroker.Options{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "duepost-that-is-nowhere") {
		t.Errorf("got %v, want the program named", err)
	}
	_, err = testbroker.StartDuepost(t.Context(), "false", testbroker.Options{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "it ended: exit status 1") {
		t.Errorf("got %v, want that it ended", err)
	}
}
