package httpapi

import (
	"net/http"
	"strconv"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
)

func ok() any { return object{"status": "ok"} }

// failed is the answer of a check that did not pass.
func failed(reason string, more object) (any, error) {
	answer := object{"status": "failed", "reason": reason}
	for key, v := range more {
		answer[key] = v
	}
	return status{http.StatusServiceUnavailable, answer}, nil
}

// checkNode says what /healthz says, and whether publishers are held back.
func checkNode(c *call) (any, error) {
	switch h := c.health(); {
	case h.Status != Ready:
		return failed(h.Reason, nil)
	case c.Server.Stats().Blocked:
		return failed("There are alarms in effect in the cluster", object{
			"alarms": []object{{"node": c.Node, "resource": "disk"}}})
	}
	return ok(), nil
}

func checkQuorum(*call) (any, error) {
	return object{"status": "ok", "reason": "single node cluster"}, nil
}

func checkPort(c *call) (any, error) {
	asked, err := strconv.Atoi(c.name("port"))
	if err != nil {
		return nil, badRequest("port is no number")
	}
	ports := []int{}
	for _, l := range c.Listeners {
		if l.Port == asked {
			return object{"status": "ok", "port": asked}, nil
		}
		ports = append(ports, l.Port)
	}
	return failed("No active listener", object{"missing": asked, "ports": ports})
}

func checkProtocol(c *call) (any, error) {
	asked := map[string]string{"amqp091": "amqp", "amqps": "amqp/ssl"}[c.name("protocol")]
	if asked == "" {
		asked = c.name("protocol")
	}
	protocols := []string{}
	for _, l := range c.Listeners {
		if l.Protocol == asked {
			return object{"status": "ok", "protocol": asked}, nil
		}
		protocols = append(protocols, l.Protocol)
	}
	return failed("No active listener", object{"missing": c.name("protocol"), "protocols": protocols})
}

// alivenessQueue is RabbitMQ's. It stays, so that a test is cheap.
const alivenessQueue = "aliveness-test"

// testAliveness publishes a message in the virtual host and takes it out again.
func testAliveness(c *call) (any, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.QueueDeclare(broker.QueueSpec{Name: alivenessQueue}); err != nil {
		return nil, err
	}
	_, err = s.NewPublisher().Publish(&broker.Message{
		RoutingKey: []byte(alivenessQueue), Properties: new(amqp.Properties), Props: new(amqp.Properties).Append(nil),
		Body: []byte("test_message"),
	})
	if err != nil {
		return nil, err
	}
	q, err := s.Queue(alivenessQueue)
	if err != nil {
		return nil, err
	}
	if _, _, found, err := q.Get(true); err != nil || !found {
		return failed("the message did not arrive", nil)
	}
	return ok(), nil
}
