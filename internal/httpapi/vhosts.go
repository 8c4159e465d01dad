package httpapi

import (
	"encoding/json"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
)

func listVHosts(c *call) (any, error) {
	visible, err := c.visible()
	var all rows
	for _, v := range visible {
		all = append(all, c.vhostObject(v))
	}
	return all, err
}

func showVHost(c *call) (any, error) {
	v, err := c.vhost()
	if err != nil {
		return nil, err
	}
	return c.vhostObject(v), nil
}

func (c *call) vhostObject(v *broker.VHost) object {
	m := v.Metadata()
	metadata := object{"description": m.Description, "tags": list(m.Tags)}
	queueType := "undefined" // as RabbitMQ has it
	if m.DefaultQueueType != "" {
		queueType = m.DefaultQueueType
		metadata["default_queue_type"] = queueType
	}
	ready, unacknowledged := 0, 0
	for _, q := range v.QueueStates() {
		ready += q.Ready
		unacknowledged += q.Unacknowledged
	}
	return object{
		"name": v.Name(), "description": m.Description, "tags": list(m.Tags), "default_queue_type": queueType,
		"metadata": metadata, "tracing": m.Tracing, "cluster_state": object{c.Node: "running"},
		"messages": ready + unacknowledged, "messages_ready": ready, "messages_unacknowledged": unacknowledged,
	}
}

// putVHost makes a virtual host, in which its maker has all rights, or changes its metadata.
func putVHost(c *call) (any, error) {
	var body struct {
		Description      string          `json:"description"`
		Tags             json.RawMessage `json:"tags"`
		DefaultQueueType string          `json:"default_queue_type"`
		Tracing          bool            `json:"tracing"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	m := broker.VHostMetadata{Description: body.Description, DefaultQueueType: body.DefaultQueueType, Tracing: body.Tracing}
	if m.DefaultQueueType == "undefined" {
		m.DefaultQueueType = ""
	}
	if len(body.Tags) > 0 {
		var err error
		if m.Tags, err = tags(body.Tags); err != nil {
			return nil, err
		}
	}
	name := c.name("vhost")
	if c.Broker.VHost(name) == nil {
		if err := c.Users.ForgetVHost(name); err != nil {
			return nil, err
		}
	}
	created, err := c.Broker.PutVHost(name, m)
	if err != nil || !created {
		return nil, err
	}
	return made{}, c.Users.Put(auth.Records{Permissions: []auth.Permission{
		{User: c.user.Name, VHost: name, Configure: ".*", Write: ".*", Read: ".*"}}})
}

// deleteVHost ends the rights first: none must be left for another virtual host of that name.
func deleteVHost(c *call) (any, error) {
	name := c.name("vhost")
	if c.Broker.VHost(name) == nil {
		return nil, notFound()
	}
	if err := c.Users.ForgetVHost(name); err != nil {
		return nil, err
	}
	existed, err := c.Broker.DeleteVHost(name)
	c.Server.CloseVHost(name, "vhost '"+name+"' is deleted")
	if err == nil && !existed {
		err = notFound()
	}
	return nil, err
}
