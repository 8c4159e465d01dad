package server

import "github.com/duepost/duepost/internal/amqp"

// checkUserConnections refuses a connection more than its user may have. The connection is counted
// already, so that of several that come at once never too many stay. [rmq user limits]
func (c *conn) checkUserConnections() error {
	limit := limitOf(c.server.cfg.MaxUserConnections, c.peer.user)
	if connections, _ := c.server.openOf(c.peer.user, limit); limit < 0 || connections <= limit {
		return nil
	}
	return amqp.Errorf(amqp.NotAllowed, "connection refused for user '%s': user connection limit (%d) is reached",
		c.peer.user, limit)
}

// checkUserChannels refuses a channel more than its user may have, counted as connections are.
func (c *conn) checkUserChannels() error {
	limit := limitOf(c.server.cfg.MaxUserChannels, c.peer.user)
	if _, channels := c.server.openOf(c.peer.user, limit); limit < 0 || channels <= limit {
		return nil
	}
	return amqp.Errorf(amqp.NotAllowed, "number of channels opened for user '%s' has reached "+
		"the maximum allowed user limit of (%d)", c.peer.user, limit)
}

func limitOf(limits func(user string) int64, user string) int64 {
	if limits == nil {
		return -1
	}
	return limits(user)
}

// openOf counts what a user has open. It looks at every connection, which only users with a limit
// pay for.
func (s *Server) openOf(user string, limit int64) (connections, channels int64) {
	if limit < 0 {
		return 0, 0
	}
	for _, c := range s.snapshot() {
		c.mu.Lock()
		if c.told.peer.user == user {
			connections++
			channels += int64(len(c.channels))
		}
		c.mu.Unlock()
	}
	return connections, channels
}
