package e2e

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestCleanClose closes connections as a program does at its end. A broker that
// cuts the socket right behind close-ok makes the client report an error that
// was none.
func TestCleanClose(t *testing.T) {
	t.Parallel()
	b := anyBroker(t)
	for i := range 60 {
		conn, err := amqp.Dial(b.url)
		if err != nil {
			t.Fatal(err)
		}
		closed := conn.NotifyClose(make(chan *amqp.Error, 1))
		if err := conn.Close(); err != nil {
			t.Fatalf("close connection %d: %v", i, err)
		}
		if err, ok := <-closed; ok {
			t.Fatalf("clean close of connection %d was reported as %v", i, err)
		}
	}
}
