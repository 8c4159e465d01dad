package main

import (
	"context"
	"strings"

	"github.com/duepost/duepost/internal/management"
)

// listCmd lists what there is.
type listCmd struct {
	apiFlags
	vhostFlag

	What    string   `arg:"" enum:"queues,exchanges,bindings,connections,channels,consumers,policies,operator-policies,users,permissions,topic-permissions,vhosts" help:"queues, exchanges, bindings, consumers, policies, operator-policies, permissions or topic-permissions of a virtual host; connections, channels, users or vhosts."`
	Columns []string `arg:"" optional:"" help:"Which columns, by the API's names of them; a dot leads on, as in peer_host or channel_details.user."`
}

// Run lists.
func (c *listCmd) Run(ctx context.Context, p process) error {
	path, columns := c.What, strings.Fields(defaultColumns(c.What))
	switch c.What {
	case "connections", "channels", "users", "vhosts":
	case "permissions", "topic-permissions":
		path = management.Path("vhosts", c.VHost, c.What)
	default:
		path = management.Path(c.What, c.VHost)
	}
	if len(c.Columns) > 0 {
		columns = c.Columns
	}
	return c.list(ctx, p, path, columns...)
}

func defaultColumns(what string) string {
	switch what {
	case "queues":
		return "name type messages_ready messages_unacknowledged consumers policy"
	case "exchanges":
		return "name type durable policy messages_delayed"
	case "bindings":
		return "source destination destination_type routing_key arguments"
	case "connections":
		return "name user vhost state channels user_provided_name"
	case "channels":
		return "name user vhost consumer_count messages_unacknowledged prefetch_count confirm"
	case "consumers":
		return "queue.name consumer_tag ack_required prefetch_count channel_details.connection_name"
	case "policies", "operator-policies":
		return "name pattern apply-to definition priority"
	case "users":
		return "name tags"
	case "permissions":
		return "user configure write read"
	case "topic-permissions":
		return "user exchange write read"
	}
	return "name description tags default_queue_type messages"
}
