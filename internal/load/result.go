package load

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one scenario showed. Its JSON form is one line of the bench verb.
type Result struct {
	Scenario   string `json:"scenario"`
	Broker     string `json:"broker"`
	Persistent bool   `json:"persistent"`
	Publishers int    `json:"publishers"`
	Consumers  int    `json:"consumers"`
	Queues     int    `json:"queues"`
	Size       int    `json:"size"`
	// Messages is how many were published in all, warm-up included.
	Messages uint64 `json:"messages"`
	// SteadySeconds is the length of the part that the rates are from.
	SteadySeconds float64 `json:"steady_s"`
	PublishRate   float64 `json:"publish_per_s,omitempty"`
	ConsumeRate   float64 `json:"consume_per_s,omitempty"`
	// BrokerMicros is the broker's CPU time per message of the steady part; for delayed and
	// burst it is the whole life of a message. ClientMicros is this program's own, HelperMicros
	// that of Options.HelperPID.
	BrokerMicros float64 `json:"broker_us_per_msg,omitempty"`
	HelperMicros float64 `json:"helper_us_per_msg,omitempty"`
	ClientMicros float64 `json:"client_us_per_msg,omitempty"`
	RSSStartMiB  float64 `json:"rss_start_mib,omitempty"`
	RSSPeakMiB   float64 `json:"rss_peak_mib,omitempty"`
	// Confirm is from publish to confirm, Latency from publish to consumer, Lateness from due
	// to consumer, all in the steady part (Lateness: of all messages).
	Confirm  *Percentiles `json:"confirm_ms,omitempty"`
	Latency  *Percentiles `json:"latency_ms,omitempty"`
	Lateness *Percentiles `json:"lateness_ms,omitempty"`
	// LastAfterMillis is from the common due instant of a burst to its last delivery.
	LastAfterMillis float64 `json:"last_after_due_ms,omitempty"`
	Early           uint64  `json:"early"`
	Lost            uint64  `json:"lost"`
	Duplicates      uint64  `json:"duplicates"`
	Refused         uint64  `json:"refused,omitempty"` // basic.nack
}

// Percentiles are of one measure, in milliseconds.
type Percentiles struct {
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// measure is a histogram of durations that keeps the true minimum, which may be negative
// (early), beside it.
type measure struct {
	histogram *hdrhistogram.Histogram // microseconds
	min       time.Duration
}

// measureMax is the longest duration told apart; longer ones count as this.
const measureMax = time.Hour

func newMeasure() *measure {
	return &measure{
		histogram: hdrhistogram.New(1, measureMax.Microseconds(), 3),
		min:       math.MaxInt64,
	}
}

func (m *measure) record(d time.Duration) {
	m.min = min(m.min, d)
	// The value is within the histogram's range, so there is no error.
	_ = m.histogram.RecordValue(min(max(0, d), measureMax).Microseconds())
}

func (m *measure) merge(o *measure) {
	m.min = min(m.min, o.min)
	m.histogram.Merge(o.histogram)
}

// percentiles is nil when nothing was recorded.
func (m *measure) percentiles() *Percentiles {
	if m.histogram.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return millis(m.histogram.ValueAtQuantile(q)) }
	return &Percentiles{
		Min: millis(m.min.Microseconds()),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: millis(m.histogram.Max()),
	}
}

func millis(micros int64) float64 { return float64(micros) / 1000 }

// round2 keeps two digits behind the point: more would pretend.
func round2(v float64) float64 { return math.Round(v*100) / 100 }
