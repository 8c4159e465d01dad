package httpapi

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/duepost/duepost/internal/broker"
)

// rabbitVersion is the version of RabbitMQ whose API this is. Clients choose by it what to ask.
const rabbitVersion = "3.10.8"

// clusterParameter is the global parameter that holds a name other than the node's.
const clusterParameter = "cluster_name"

func showClusterName(c *call) (any, error) { return object{"name": c.clusterName()}, nil }

func (c *call) clusterName() string {
	for _, p := range c.Broker.GlobalParameters() {
		var name string
		if p.Name == clusterParameter && json.Unmarshal(p.Value, &name) == nil {
			return name
		}
	}
	return c.Node
}

func putClusterName(c *call) (any, error) {
	var body struct {
		Name *string `json:"name"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := need(required{"name", body.Name}); err != nil {
		return nil, err
	}
	value, err := json.Marshal(*body.Name)
	if err != nil {
		return nil, badRequest("name: %v", err)
	}
	return nil, c.Broker.SetGlobalParameter(broker.GlobalParameter{Name: clusterParameter, Value: value})
}

func overview(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	ready, unacknowledged, queues, exchanges := 0, 0, 0, 0
	for _, v := range visible {
		exchanges += len(v.ExchangeStates())
		for _, q := range v.QueueStates() {
			queues++
			ready += q.Ready
			unacknowledged += q.Unacknowledged
		}
	}
	now := time.Now()
	connections := c.connections()
	channels, consumers := 0, 0
	for _, info := range connections {
		channels += len(info.Channels)
		for _, ch := range info.Channels {
			consumers += ch.Consumers
		}
	}
	return object{
		"management_version": rabbitVersion, "rabbitmq_version": rabbitVersion,
		"product_name": "Duepost", "product_version": c.Version, "cluster_name": c.clusterName(), "node": c.Node,
		"erlang_version": "", "erlang_full_version": "Go " + runtime.Version(),
		"rates_mode": "basic", "disable_stats": false, "enable_queue_totals": true,
		"exchange_types": exchangeTypes(), "listeners": c.listenerObjects(), "contexts": []any{},
		"message_stats": c.messageStats(now), "churn_rates": c.churnRates(now), "statistics_db_event_queue": 0,
		"queue_totals": object{
			"messages": ready + unacknowledged, "messages_ready": ready, "messages_unacknowledged": unacknowledged,
		},
		"object_totals": object{
			"channels": channels, "connections": len(connections), "consumers": consumers,
			"exchanges": exchanges, "queues": queues,
		},
	}, nil
}

func exchangeTypes() []object {
	var types []object
	for _, name := range []string{"direct", "fanout", "headers", "topic", "x-delayed-message"} {
		types = append(types, object{"name": name, "description": "exchange type " + name, "enabled": true})
	}
	return types
}

func (c *call) listenerObjects() []object {
	all := []object{}
	for _, l := range c.Listeners {
		all = append(all, object{"node": c.Node, "protocol": l.Protocol, "ip_address": l.IP, "port": l.Port})
	}
	return all
}

func listNodes(c *call) (any, error) { return rows{c.nodeObject()}, nil }

func showNode(c *call) (any, error) {
	if c.name("node") != c.Node {
		return nil, notFound()
	}
	return c.nodeObject(), nil
}

func (c *call) nodeObject() object {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return object{
		"name": c.Node, "running": true, "type": "disc", "os_pid": strconv.Itoa(os.Getpid()),
		"uptime": time.Since(c.Began).Milliseconds(), "processors": runtime.NumCPU(),
		"mem_used": memory.Sys - memory.HeapReleased, "mem_alarm": false,
		"disk_free_alarm": c.Server.Stats().Blocked, "partitions": []any{}, "rates_mode": "basic",
		"sockets_used":   c.Server.Stats().Connections,
		"exchange_types": exchangeTypes(), "applications": []any{}, "contexts": []any{},
	}
}
