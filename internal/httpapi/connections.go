package httpapi

import (
	"fmt"
	"net"
	"time"

	"github.com/duepost/duepost/internal/server"
)

// connections are those that the user may see: monitors all, others their own, and of the virtual
// host of the path if one is named. Those in the handshake have no user yet.
func (c *call) connections() []server.ConnInfo {
	var seen []server.ConnInfo
	for _, info := range c.Server.Connections() {
		vhost := c.name("vhost")
		if (c.isMonitor() || info.User == c.user.Name) && (vhost == "" || vhost == info.VHost) {
			seen = append(seen, info)
		}
	}
	return seen
}

func (c *call) connectionObject(info *server.ConnInfo) object {
	host, port := hostPort(info.Local)
	peerHost, peerPort := hostPort(info.Remote)
	o := object{
		"name": info.Name, "user": info.User, "vhost": info.VHost, "node": c.Node, "state": info.State,
		"type": "network", "protocol": "AMQP 0-9-1",
		"user_who_performed_action": info.User, "auth_mechanism": info.Mechanism,
		"client_properties": plainTable(info.ClientProperties), "connected_at": info.Since.UnixMilli(),
		"channels": len(info.Channels), "channel_max": info.ChannelMax, "frame_max": info.FrameMax,
		"timeout": int(info.Heartbeat / time.Second),
		"host":    host, "port": port, "peer_host": peerHost, "peer_port": peerPort, "ssl": info.TLS,
		"recv_oct": info.Traffic.BytesIn, "send_oct": info.Traffic.BytesOut, "send_pend": info.OutputPending,
	}
	if info.ProvidedName != "" {
		o["user_provided_name"] = info.ProvidedName
	}
	return o
}

func hostPort(a net.Addr) (host string, port int) {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.String(), tcp.Port
	}
	return fmt.Sprint(a), 0
}

func listConnections(c *call) (any, error) {
	all := rows{}
	for _, info := range c.connections() {
		all = append(all, c.connectionObject(&info))
	}
	return all, nil
}

// connection returns the one that the path names. One of somebody else's is refused, to whom only
// sees their own.
func (c *call) connection() (*server.ConnInfo, error) {
	for _, info := range c.Server.Connections() {
		if info.Name != c.name("name") {
			continue
		}
		if !c.isMonitor() && info.User != c.user.Name {
			return nil, notAuthorised("User not authorised to access object")
		}
		return &info, nil
	}
	return nil, notFound()
}

func showConnection(c *call) (any, error) {
	info, err := c.connection()
	if err != nil {
		return nil, err
	}
	return c.connectionObject(info), nil
}

// closeConnection closes one's own connection, or as an administrator anybody's.
func closeConnection(c *call) (any, error) {
	info, err := c.connection()
	if err != nil {
		return nil, err
	}
	if !c.isAdministrator() && info.User != c.user.Name {
		return nil, notAuthorised("User not authorised to access object")
	}
	c.Server.CloseConnection(info.Name, c.reason())
	return nil, nil
}

// reason is what the client of a connection that is closed is told.
func (c *call) reason() string {
	if reason := c.r.Header.Get("X-Reason"); reason != "" {
		return reason
	}
	return "Closed via management plugin"
}

// listOfConnection is a connection's channels, or, where the name is "username", the connections of
// a user.
func listOfConnection(c *call) (any, error) {
	if c.name("name") == "username" {
		all := rows{}
		for _, info := range c.connections() {
			if info.User == c.name("what") {
				all = append(all, object{"name": info.Name, "vhost": info.VHost, "user": info.User, "node": c.Node})
			}
		}
		return all, nil
	}
	info, err := c.connection()
	switch {
	case err != nil:
		return nil, err
	case c.name("what") != "channels":
		return nil, notFound()
	}
	return c.channelRows(info), nil
}

func closeConnectionsOfUser(c *call) (any, error) {
	c.Server.CloseUser(c.name("user"), c.reason())
	return nil, nil
}

func (c *call) channelRows(info *server.ConnInfo) rows {
	all := rows{}
	for i := range info.Channels {
		all = append(all, c.channelObject(info, &info.Channels[i]))
	}
	return all
}

func channelName(info *server.ConnInfo, ch *server.ChannelInfo) string {
	return fmt.Sprintf("%s (%d)", info.Name, ch.Number)
}

func (c *call) channelObject(info *server.ConnInfo, ch *server.ChannelInfo) object {
	peerHost, peerPort := hostPort(info.Remote)
	prefetch := 0
	if n := len(ch.Subscriptions); n > 0 {
		prefetch = ch.Subscriptions[n-1].Prefetch
	}
	return object{
		"name": channelName(info, ch), "number": ch.Number, "user": info.User, "vhost": info.VHost, "node": c.Node,
		"connection_details": object{"name": info.Name, "peer_host": peerHost, "peer_port": peerPort},
		"state":              "running", "confirm": ch.Confirming, "transactional": ch.Transactional,
		"consumer_count": ch.Consumers, "messages_unacknowledged": ch.Unacknowledged,
		"prefetch_count": prefetch, "global_prefetch_count": ch.Prefetch, "user_who_performed_action": info.User,
	}
}

func listChannels(c *call) (any, error) {
	all := rows{}
	for _, info := range c.connections() {
		all = append(all, c.channelRows(&info)...)
	}
	return all, nil
}

func showChannel(c *call) (any, error) {
	for _, info := range c.connections() {
		for i := range info.Channels {
			if ch := &info.Channels[i]; channelName(&info, ch) == c.name("name") {
				o := c.channelObject(&info, ch)
				o["consumer_details"] = c.consumersOf(&info, ch)
				return o, nil
			}
		}
	}
	return nil, notFound()
}

func (c *call) consumersOf(info *server.ConnInfo, ch *server.ChannelInfo) rows {
	all := rows{}
	peerHost, peerPort := hostPort(info.Remote)
	for _, k := range ch.Subscriptions {
		if k.Consumer == nil {
			continue // direct replies come from no queue
		}
		active, only := k.Consumer.Active()
		activity := "up"
		switch {
		case !active:
			activity = "waiting"
		case only:
			activity = "single_active"
		}
		all = append(all, object{
			"consumer_tag": k.Tag, "queue": object{"name": k.Queue, "vhost": info.VHost}, "ack_required": !k.NoAck,
			"exclusive": k.Exclusive, "prefetch_count": k.Prefetch, "arguments": plainTable(k.Args),
			"active": active, "activity_status": activity,
			"channel_details": object{
				"name": channelName(info, ch), "number": ch.Number, "connection_name": info.Name, "node": c.Node,
				"peer_host": peerHost, "peer_port": peerPort, "user": info.User,
			},
		})
	}
	return all
}

// consumerRows are the consumers of all connections in the virtual host of the path, else of all.
func (c *call) consumerRows() rows {
	all := rows{}
	for _, info := range c.Server.Connections() {
		if vhost := c.name("vhost"); vhost != "" && vhost != info.VHost {
			continue
		}
		for i := range info.Channels {
			all = append(all, c.consumersOf(&info, &info.Channels[i])...)
		}
	}
	return all
}

// listConsumers lists the consumers of queues that the user may see.
func listConsumers(c *call) (any, error) {
	visible, err := c.visible()
	if err != nil {
		return nil, err
	}
	seen := make(map[any]bool)
	for _, v := range visible {
		seen[v.Name()] = true
	}
	all := rows{}
	for _, row := range c.consumerRows() {
		if seen[row.at("queue.vhost")] {
			all = append(all, row)
		}
	}
	return all, nil
}
