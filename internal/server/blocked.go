package server

import "github.com/duepost/duepost/internal/wire"

// awaitUnblocked is called before a publish is read if publishers may be
// blocked, and before the first publish of a connection. The client is told and
// nothing more is read from it until the broker has what it lacked.
// [rmq connection.blocked]
func (c *conn) awaitUnblocked() {
	c.hasPublished = true
	c.mu.Lock()
	c.told.published = true
	c.mu.Unlock()
	if !c.server.isBlocked.Load() {
		return
	}
	c.flush()
	c.updateBlocked(c.server.blockedReason())
	c.park(c.server.isBlocked.Load)
	c.updateBlocked(c.server.blockedReason()) // what was told may have been late
}

// updateBlocked tells a client that publishes whether it may. Any goroutine.
func (c *conn) updateBlocked(reason string) {
	defer c.wakeReader()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.told.published || (reason != "") == (c.told.blocked != "") {
		return
	}
	c.told.blocked = reason
	switch {
	case !c.told.peer.canBlocked:
	case reason != "":
		c.send(0, &wire.ConnectionBlocked{Reason: reason})
	default:
		c.send(0, &wire.ConnectionUnblocked{})
	}
}
