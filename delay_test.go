package duepost_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost"
)

func TestDelayedToAQueue(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, o duepost.Options) {
		r := newRig(t, o)
		r.queue("q")
		got := r.deliveries("q")
		for _, delay := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 230 * time.Millisecond} {
			began := r.broker.Now()
			receipt := r.publish(duepost.Message{
				RoutingKey: "q", Body: []byte(delay.String()), Delay: delay, Headers: map[string]any{"a": "b"},
			})
			d := next(t, got)
			want := duepost.Message{
				RoutingKey: "q", Body: []byte(delay.String()), Headers: map[string]any{"a": "b"},
				MessageID: receipt.MessageID, Timestamp: d.Timestamp,
			}
			if diff := cmp.Diff(want, d.Message); diff != "" {
				t.Errorf("delay %v: message (-want +got):\n%s", delay, diff)
			}
			if took := d.Received.Sub(began); took < delay || receipt.Due.Before(began.Add(delay)) {
				t.Errorf("delay %v: came after %v, receipt says %v", delay, took, receipt.Due.Sub(began))
			}
			// Due is in whole milliseconds, cut.
			if late := d.Received.Sub(d.Due); d.Lateness() != late || d.Due.Before(began.Add(delay-time.Millisecond)) {
				t.Errorf("delay %v: due %v after publishing, lateness %v", delay, d.Due.Sub(began), d.Lateness())
			}
			if death, died := d.Death(); died {
				t.Errorf("delay %v: the delay counts as a death: %+v", delay, death)
			}
		}
	})
}
