package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/duepost/duepost/internal/relay"
)

// collector makes metrics of the counters of relays when it is asked.
type collector struct {
	fleet *relay.Fleet

	moved, released, parked, sessions, atWork, alarm, lateness *prometheus.Desc
}

func newCollector(f *relay.Fleet) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("duepost_relay_"+name, help, []string{"vhost"}, nil)
	}
	return &collector{
		fleet:    f,
		moved:    desc("moved_total", "Messages put into a slot of the wheel."),
		released: desc("released_total", "Messages handed on to their exchange."),
		parked:   desc("parked_total", "Messages that could not be delivered, and were parked."),
		sessions: desc("sessions_total", "Connections to RabbitMQ that came to work."),
		atWork:   desc("at_work", "1 while the relay works, 0 while it tries to begin."),
		alarm:    desc("alarm", "1 while something endangers messages, such as a policy of somebody else."),
		lateness: desc("lateness_seconds", "How long after it was due the release of a message was confirmed."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for vhost, r := range c.fleet.Relays() {
		s := r.Stats()
		for desc, n := range map[*prometheus.Desc]uint64{
			c.moved: s.Moved.Load(), c.released: s.Released.Load(), c.parked: s.Parked.Load(), c.sessions: s.Sessions.Load(),
		} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), vhost)
		}
		for desc, so := range map[*prometheus.Desc]bool{c.atWork: r.IsAtWork(), c.alarm: r.Alarm() != ""} {
			n := 0.0
			if so {
				n = 1
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, vhost)
		}
		ends, n, sum := s.Lateness.Snapshot()
		buckets := map[float64]uint64{}
		for _, b := range ends {
			buckets[b.Most.Seconds()] = b.Messages
		}
		out <- prometheus.MustNewConstHistogram(c.lateness, n, sum.Seconds(), buckets, vhost)
	}
}
