package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/definitions"
)

// withDefinitions returns a configuration that imports a file with that text.
func withDefinitions(t *testing.T, text string) config.Config {
	t.Helper()
	c := testConfig(t)
	c.Definitions = filepath.Join(t.TempDir(), "definitions.json")
	if err := os.WriteFile(c.Definitions, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefinitionsAreImportedBeforeClientsConnect(t *testing.T) {
	t.Parallel()
	c := withDefinitions(t, `{"queues":[{"name":"kept","vhost":"/"}],
		"exchanges":[{"name":"later","vhost":"/","type":"x-delayed-message","arguments":{"x-delayed-type":"direct"}}],
		"bindings":[{"source":"later","vhost":"/","destination":"kept","destination_type":"queue","routing_key":"k"}]}`)
	for range 2 { // the second start finds everything there
		d := mustStart(t, c)
		ch := mustChannel(t, d)
		publish(t, ch, "later", "k", nil, "now")
		if q, err := ch.QueueDeclarePassive("kept", true, false, false, false, nil); err != nil || q.Messages == 0 {
			t.Errorf("got %+v, %v, want a message", q, err)
		}
		mustShutdown(t, d)
	}
}

func TestDefinitionsBringUsersAndVHosts(t *testing.T) {
	t.Parallel()
	d := mustStart(t, withDefinitions(t, `{
		"users":[{"name":"shop","password":"s3cret","tags":""}],
		"vhosts":[{"name":"/"},{"name":"orders"}],
		"permissions":[{"user":"shop","vhost":"orders","configure":"^$","write":"^new$","read":".*"}],
		"policies":[{"vhost":"orders","name":"p","pattern":"^n","definition":{"max-length":1}}],
		"queues":[{"name":"new","vhost":"orders"}]}`))
	conn, err := amqp.Dial("amqp://shop:s3cret@" + d.AMQPAddr().String() + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if q, err := ch.QueueDeclarePassive("new", true, false, false, false, nil); err != nil || q.Name != "new" {
		t.Errorf("got %+v, %v", q, err)
	}
	if _, err := ch.QueueDeclare("other", true, false, false, false, nil); err == nil {
		t.Error("a user without the right has declared a queue")
	}
	if guest, err := amqp.Dial("amqp://guest:guest@" + d.AMQPAddr().String() + "/"); err == nil {
		_ = guest.Close()
		t.Error("guest is let in, though the file brought other users")
	}
}

func TestDefinitionsWithAFaultEndTheStart(t *testing.T) {
	t.Parallel()
	c := withDefinitions(t, `{"queues":[{"name":"kept","vhost":"/"},{"name":"bad","vhost":"gone"}]}`)
	_, err := Start(c, nil)
	var refused *StartError
	var faults definitions.Faults
	if !errors.As(err, &refused) || refused.Setting != "definitions" || refused.Hint() == "" || !errors.As(err, &faults) {
		t.Fatalf("Start = %v, want a StartError with faults", err)
	}
	if !strings.Contains(err.Error(), "$.queues[1].vhost: no such virtual host 'gone'") {
		t.Errorf("Start = %v, want the place of the fault", err)
	}
	c.Definitions = ""
	d := mustStart(t, c)
	if _, err := mustChannel(t, d).QueueDeclarePassive("kept", true, false, false, false, nil); err == nil {
		t.Error("a part of the file was imported")
	}
	c = testConfig(t)
	c.Definitions = filepath.Join(t.TempDir(), "none")
	if _, err := Start(c, nil); !errors.As(err, &refused) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want that there is no such file", err)
	}
}
