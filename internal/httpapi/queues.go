package httpapi

import "github.com/duepost/duepost/internal/broker"

func (c *call) queueObject(vhost string, q *broker.QueueState) object {
	o := object{
		"name": q.Name, "vhost": vhost, "node": c.Node, "type": q.Type(), "state": "running",
		"durable": q.Durable, "auto_delete": q.AutoDelete, "exclusive": q.Exclusive,
		"arguments": plainTable(q.Args), "consumers": q.Consumers,
		"messages": q.Ready + q.Unacknowledged, "messages_ready": q.Ready, "messages_unacknowledged": q.Unacknowledged,
		"message_bytes_ready": q.ReadyBytes, "exclusive_consumer_tag": nil, "single_active_consumer_tag": nil,
		"policy": nil, "operator_policy": nil, "effective_policy_definition": object{},
	}
	if q.ExclusiveTag != "" {
		o["exclusive_consumer_tag"] = q.ExclusiveTag
	}
	if q.ActiveTag != "" {
		o["single_active_consumer_tag"] = q.ActiveTag
	}
	if q.Policies.Policy != "" {
		o["policy"] = q.Policies.Policy
	}
	if q.Policies.OperatorPolicy != "" {
		o["operator_policy"] = q.Policies.OperatorPolicy
	}
	if len(q.Policies.Definition) > 0 {
		o["effective_policy_definition"] = q.Policies.Definition
	}
	return o
}

func listQueues(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	all := rows{}
	for _, v := range visible {
		for _, q := range v.QueueStates() {
			all = append(all, c.queueObject(v.Name(), &q))
		}
	}
	return all, nil
}

func showQueue(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	q, ok := v.QueueState(c.name("name"))
	if !ok {
		return nil, notFound()
	}
	o := c.queueObject(v.Name(), &q)
	o["incoming"], o["deliveries"] = []any{}, []any{}
	consumers := rows{}
	for _, row := range c.consumerRows() {
		if row.at("queue.name") == q.Name && row.at("queue.vhost") == v.Name() {
			consumers = append(consumers, row)
		}
	}
	o["consumer_details"] = consumers
	return o, nil
}

func putQueue(c *call) (any, error) {
	var body struct {
		Durable    flag           `json:"durable"`
		AutoDelete flag           `json:"auto_delete"`
		Arguments  map[string]any `json:"arguments"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	_, existed := s.VHost().QueueState(c.name("name"))
	_, err = s.QueueDeclare(broker.QueueSpec{
		Name: c.name("name"), Durable: bool(body.Durable), AutoDelete: bool(body.AutoDelete), Args: table(body.Arguments),
	})
	return madeIf(!existed), err
}

func deleteQueue(c *call) (any, error) {
	return c.onQueue(func(s *broker.Session, name string) error {
		_, err := s.QueueDelete(name, c.asks("if-unused"), c.asks("if-empty"))
		return err
	})
}

func purgeQueue(c *call) (any, error) {
	return c.onQueue(func(s *broker.Session, name string) error {
		_, err := s.QueuePurge(name)
		return err
	})
}

// onQueue does something with the queue of the path, as the user.
func (c *call) onQueue(do func(s *broker.Session, name string) error) (any, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, ok := s.VHost().QueueState(c.name("name")); !ok {
		return nil, notFound()
	}
	return nil, do(s, c.name("name"))
}
