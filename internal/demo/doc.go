// Package demo is about showing the main job in a quarter of a minute: a short order story over
// real AMQP against a broker in this process, which is killed and restarted in the middle.
//
// The story: orders are placed, each with a delayed message that says "time is up" and is due
// when the order must have been paid; some are paid before, and the shop closes the rest when
// their message comes. The first order has the longest delay, so a queue that only looks at its
// head would hold up everybody behind it. A thousand more orders are placed quietly.
//
// It knows the daemon's handle and the AMQP client. What it judges: nothing lost, nothing early,
// nothing later than Limit and what the machine itself made the process wait (see Report).
package demo
