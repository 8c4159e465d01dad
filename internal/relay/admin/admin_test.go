//go:build relay

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay"
	"github.com/duepost/duepost/internal/relay/topology"
	"github.com/duepost/duepost/internal/testbroker"
)

const patience = 60 * time.Second

// rig is a RabbitMQ with a relay, what it tells over HTTP, and a client.
type rig struct {
	*testing.T
	api  *management.Client
	url  string // of the handler
	conn *amqp.Connection
	ch   *amqp.Channel
	stop func() // ends the relay
}

func onEach(t *testing.T, f func(*rig)) {
	t.Helper()
	all, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		testbroker.StartRabbitMQ(t, testbroker.Options{}) // says what is missing
	}
	for _, one := range all {
		t.Run(one.Version, func(t *testing.T) {
			t.Parallel()
			b, err := one.Start(t.Context(), testbroker.Options{Dir: t.TempDir(), Management: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Kill(); err != nil {
					t.Error(err)
				}
			})
			f(newRig(t, b))
		})
	}
}

func newRig(t *testing.T, b *testbroker.Broker) *rig {
	t.Helper()
	r := &rig{T: t, api: &management.Client{URL: "http://" + b.HTTPAddr, User: "guest", Password: "guest"}}
	fleet, err := relay.NewFleet(relay.Config{
		URLs: []string{b.URL()}, Management: r.api.URL, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(New(Config{Fleet: fleet, Management: r.api}))
	t.Cleanup(server.Close)
	r.url = server.URL
	if code, body := r.get("/health/ready"); code != http.StatusServiceUnavailable || !strings.Contains(body, "no relay has begun") {
		t.Errorf("before the relay begins it is ready: %d %s", code, body)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fleet.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(r.stop)
	if r.conn, err = amqp.Dial(b.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.conn.Close() })
	if r.ch, err = r.conn.Channel(); err != nil {
		t.Fatal(err)
	}
	r.await("the relay is ready", func() bool { code, _ := r.get("/health/ready"); return code == http.StatusOK })
	if err := topology.DeclareExchange(r.conn, topology.Exchange{Name: "x", Type: "topic", Durable: true, Alternate: "amq.fanout"}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) get(path string) (int, string) {
	r.Helper()
	answer, err := http.Get(r.url + path)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// await waits; the management API is some seconds behind.
func (r *rig) await(what string, so func() bool) {
	r.Helper()
	for until := time.Now().Add(patience); !so(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(until) {
			_, status := r.get("/api/relay/status")
			r.Fatalf("%s: it never is; the status is %s", what, status)
		}
	}
}

func (r *rig) publish(exchange, key string, delay time.Duration) {
	r.Helper()
	err := r.ch.Publish(exchange, key, true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": delay.Milliseconds()}, Body: []byte("body")})
	if err != nil {
		r.Fatal(err)
	}
}

// status is what the relay tells of its one virtual host.
func (r *rig) status() Status {
	r.Helper()
	var all struct {
		VHosts []Status `json:"vhosts"`
	}
	code, body := r.get("/api/relay/status")
	if err := json.Unmarshal([]byte(body), &all); err != nil || code != http.StatusOK || len(all.VHosts) != 1 {
		r.Fatalf("status: %d %s, %v", code, body, err)
	}
	return all.VHosts[0]
}

// TestWhatOperatorsSee: what waits and when it is due, who is alive, and the counters.
func TestWhatOperatorsSee(t *testing.T) {
	t.Parallel()
	onEach(t, func(r *rig) {
		now := time.Now()
		for range 3 {
			r.publish("x", "far", time.Hour)
		}
		r.publish("x", "near", 40*time.Second)
		r.await("four wait, on the wheel", func() bool { s := r.status(); return s.Waiting == 4 && s.Intake == 0 })
		s := r.status()
		if len(s.Timeline) != 2 || s.Timeline[0].Messages != 1 || s.Timeline[1].Messages != 3 {
			r.Fatalf("the timeline is %+v, want one message and then three", s.Timeline)
		}
		for i, delay := range []time.Duration{40 * time.Second, time.Hour} {
			// The clock of the delay starts when the relay has the message.
			bin := s.Timeline[i]
			if due := now.Add(delay); bin.To.Before(due) || bin.From.After(due.Add(patience)) {
				r.Errorf("due after %v from %v is told as %v to %v", delay, now, bin.From, bin.To)
			}
		}
		r.await("a relay is alive and has slots", func() bool {
			for name, slots := range r.status().Relays {
				return strings.HasPrefix(name, "duepost-") && slots > 0
			}
			return false
		})
		_, metrics := r.get("/metrics")
		for _, want := range []string{
			`duepost_relay_moved_total{vhost="/"} 4`, `duepost_relay_released_total{vhost="/"} 0`,
			`duepost_relay_at_work{vhost="/"} 1`, `duepost_relay_alarm{vhost="/"} 0`,
			`duepost_relay_lateness_seconds_bucket{vhost="/",le="0.001"} 0`,
		} {
			if !strings.Contains(metrics, want) {
				r.Errorf("metrics lack %s:\n%s", want, metrics)
			}
		}
		all, err := topology.Delayed(r.Context(), r.api, "/")
		if want := (topology.Exchange{Name: "x", Type: "topic", Durable: true, Alternate: "amq.fanout"}); err != nil || len(all) != 1 || all[0] != want {
			r.Errorf("delayed exchanges are %+v, %v, want %+v", all, err, want)
		}
	})
}

// TestRedriveAndRemove: what nobody takes is parked, seen, and handed on when somebody does; and all that a
// relay has made goes when nothing needs it.
func TestRedriveAndRemove(t *testing.T) {
	t.Parallel()
	onEach(t, func(r *rig) {
		for _, key := range []string{"a", "a", "b"} {
			r.publish("x", key, 200*time.Millisecond)
		}
		var parked []relay.Parked
		r.await("three are parked", func() (so bool) {
			var err error
			if parked, err = relay.ListParked(r.conn, 10); err != nil {
				r.Fatal(err)
			}
			return len(parked) == 3
		})
		if p := parked[0]; p.Exchange != "x" || p.Key != "a" && p.Key != "b" || p.Bytes != 4 || !strings.Contains(p.Reason, "unroutable") || p.ID == "" {
			r.Errorf("parked is %+v", p)
		}
		refuses := func(reason string) {
			r.Helper()
			var used *topology.InUseError
			if err := topology.Remove(r.Context(), r.conn, r.api, "/"); !errors.As(err, &used) || !strings.Contains(err.Error(), reason) {
				r.Errorf("remove: %v, want a refusal with %q", err, reason)
			}
		}
		refuses(`exchange "x"`)
		if _, err := r.ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
			r.Fatal(err)
		}
		if err := r.ch.QueueBind("q", "a", "x.duepost", false, nil); err != nil {
			r.Fatal(err)
		}
		for _, tc := range []struct {
			exchange string
			want     relay.Redriven
		}{{"other", relay.Redriven{Left: 3}}, {"x", relay.Redriven{Released: 2, Left: 1}}, {"", relay.Redriven{Left: 1}}} {
			if got, err := relay.Redrive(r.Context(), r.conn, "guest", tc.exchange, 100); err != nil || got != tc.want {
				r.Errorf("redrive of %q: %+v, %v, want %+v", tc.exchange, got, err, tc.want)
			}
		}
		if q, err := r.ch.QueueDeclarePassive("q", true, false, false, false, nil); err != nil || q.Messages != 2 {
			r.Errorf("queue has %d, %v, want 2", q.Messages, err)
		}
		if err := r.ch.QueueBind("q", "b", "x.duepost", false, nil); err != nil {
			r.Fatal(err)
		}
		if got, err := relay.Redrive(r.Context(), r.conn, "guest", "", 100); err != nil || got != (relay.Redriven{Released: 1}) {
			r.Errorf("redrive of the last: %+v, %v", got, err)
		}
		if err := topology.DeleteExchange(r.conn, "x"); err != nil {
			r.Fatal(err)
		}
		refuses("a relay consumes")
		r.stop()
		r.await("all is removed", func() bool { // once RabbitMQ has noticed that the relay is gone
			err := topology.Remove(r.Context(), r.conn, r.api, "/")
			if used := new(topology.InUseError); err != nil && !errors.As(err, &used) {
				r.Fatal(err)
			}
			return err == nil
		})
		for _, name := range []string{topology.Intake, topology.Rescue, topology.Parked, topology.WheelQueue(0, 0)} {
			if _, found, err := topology.Count(r.conn, name); err != nil || found {
				r.Errorf("queue %q is there: %v, %v", name, found, err)
			}
		}
		body, err := r.api.Do(r.Context(), management.Request{Method: http.MethodGet, Path: "policies"})
		if err != nil || strings.TrimSpace(string(body)) != "[]" {
			r.Errorf("policies are %s, %v, want none", body, err)
		}
	})
}
