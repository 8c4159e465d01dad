package server

import (
	"log/slog"
	"time"

	"github.com/duepost/duepost/internal/amqp"
)

// A delivery that waits too long for its ack closes the channel, as in RabbitMQ: a consumer that
// hangs would keep its messages for ever. As there, only the oldest delivery of a channel is looked
// at, and not at the very instant: the connection's watch does it when it looks, and the age of a
// delivery is known to two of its periods, rounded down. [rmq consumer timeout]

// stamp is the time that deliveries are marked with from now until the next look: no earlier than
// any of them, in seconds since the connection began.
func (c *conn) stamp(now time.Time, period time.Duration) {
	c.lookedAt.Store(uint32((now.Sub(c.since) + period + time.Second - 1) / time.Second))
}

// lookAcks has channels closed whose oldest delivery is overdue.
func (c *conn) lookAcks(now time.Time) {
	if phase(c.phase.Load()) != phaseOpen {
		return
	}
	for _, ch := range c.openChannels() {
		timeout, overdue := ch.overdueAck(now)
		if !overdue {
			continue
		}
		ch.timedOut.Store(int64(timeout))
		c.hasErrand.Store(true)
	}
	if c.hasErrand.Load() {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // so that a waiting reader does it now
	}
}

// overdueAck reports whether the oldest delivery has waited longer than it may.
func (ch *channel) overdueAck(now time.Time) (timeout time.Duration, overdue bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.window.count == 0 {
		return 0, false
	}
	oldest := ch.window.at(0)
	timeout = ch.timeoutOf(ch.sources[oldest.source])
	age := now.Sub(ch.c.since) - time.Duration(oldest.at)*time.Second
	return timeout, timeout > 0 && age >= timeout
}

// timeoutOf is how long deliveries from a source may wait: what the consumer says, else its queue,
// else the server; 0 for ever.
func (ch *channel) timeoutOf(s *source) time.Duration {
	if s.consumer != nil && s.consumer.timeout >= 0 {
		return time.Duration(s.consumer.timeout) * time.Millisecond
	}
	if timeout, ok := s.queue.ConsumerTimeout(); ok {
		return timeout
	}
	return max(ch.c.server.cfg.ConsumerTimeout, 0)
}

// runErrands does what was left for the reader and lets it wait again.
func (c *conn) runErrands() {
	if c.hasErrand.Swap(false) {
		for _, ch := range c.openChannels() {
			timeout := time.Duration(ch.timedOut.Swap(0))
			if timeout == 0 || ch.closing {
				continue
			}
			c.note(eventConsumerTimeout, slog.LevelWarn, "delivery not acknowledged in time",
				slog.Int("chan", int(ch.number)), slog.Duration("dur", timeout))
			_ = c.fail(ch, amqp.Errorf(amqp.PreconditionFailed, "delivery acknowledgement on channel %d "+
				"timed out. Timeout value used: %d ms. This timeout value can be configured, see "+
				"consumers doc guide to learn more", ch.number, timeout.Milliseconds()))
		}
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	if phase(c.phase.Load()) != phaseOpen { // a close that began meanwhile has set one
		_ = c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.CloseTimeout))
	}
}
