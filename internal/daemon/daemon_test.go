package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/httpapi"
	"github.com/duepost/duepost/internal/store"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

func TestReadyOnEmptyDirectory(t *testing.T) {
	t.Parallel()
	began := time.Now()
	d := mustStart(t, testConfig(t))
	t.Logf("ready after %v", time.Since(began))
	if h := d.Health(); h.Status != httpapi.Ready {
		t.Errorf("Health() = %+v, want ready", h)
	}
	if code, h := health(t, d); code != http.StatusOK || h.Status != httpapi.Ready {
		t.Errorf("/healthz = %d %+v, want 200 ready", code, h)
	}
	mustShutdown(t, d)
	if h := d.Health(); h.Status != httpapi.Stopping {
		t.Errorf("after Shutdown Health() = %+v, want stopping", h)
	}
}

// Messages that nobody sees in a queue are seen over HTTP.
func TestHealthCountsPendingAndParked(t *testing.T) {
	t.Parallel()
	d := mustStart(t, testConfig(t))
	ch := mustChannel(t, d)
	declare(t, ch)
	publish(t, ch, "due", "kept", amqp.Table{"x-delay": int32(3_600_000)}, "later")
	publish(t, ch, "due", "nowhere", amqp.Table{"x-delay": int32(1)}, "parked")
	// Due after it and handed over means that the one before is parked.
	publish(t, ch, "due", "kept", amqp.Table{"x-delay": int32(1)}, "now")
	deliveries, err := ch.Consume("kept", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-deliveries:
	case <-time.After(patience):
		t.Fatalf("no message after %v", patience)
	}
	if _, h := health(t, d); h.Totals == nil || *h.Totals != (httpapi.Totals{Pending: 1, Parked: 1}) {
		t.Errorf("/healthz = %+v, want 1 pending and 1 parked", h.Totals)
	}
}

// What was confirmed is there after an orderly stop and after a kill.
func TestMessagesSurvive(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *Daemon){
		"shutdown": mustShutdown,
		"kill":     func(_ *testing.T, d *Daemon) { d.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			d := mustStart(t, cfg)
			ch := mustChannel(t, d)
			declare(t, ch)
			publish(t, ch, "", "kept", nil, "now")
			publish(t, ch, "due", "kept", amqp.Table{"x-delay": int32(600)}, "later")
			stop(t, d)

			d = mustStart(t, cfg)
			ch = mustChannel(t, d)
			deliveries, err := ch.Consume("kept", "", true, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"now", "later"} {
				select {
				case m := <-deliveries:
					if string(m.Body) != want {
						t.Errorf("got %q, want %q", m.Body, want)
					}
				case <-time.After(patience):
					t.Fatalf("no message %q after %v", want, patience)
				}
			}
			mustShutdown(t, d)
		})
	}
}

func TestShutdownTellsClients(t *testing.T) {
	t.Parallel()
	d := mustStart(t, testConfig(t))
	conn := mustDial(t, d)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	mustShutdown(t, d)
	if err := <-closed; err == nil || err.Code != amqp.ConnectionForced {
		t.Errorf("the client was told %v, want 320 CONNECTION_FORCED", err)
	}
	d.Kill() // has nothing to do any more
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	running := testConfig(t)
	mustStart(t, running)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly := filepath.Join(t.TempDir(), "read-only")
	if err := os.Mkdir(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // root writes everywhere else
		readOnly = "/sys"
	}
	for _, tt := range []struct {
		name    string
		edit    func(*config.Config)
		setting string
		cause   error // nil = any
	}{
		{"directory in use", func(c *config.Config) { c.DataDir = running.DataDir }, "data-dir", store.ErrLocked},
		{"directory not writable", func(c *config.Config) { c.DataDir = filepath.Join(readOnly, "data") }, "data-dir", nil},
		{"directory is a file", func(c *config.Config) { c.DataDir = file }, "data-dir", nil},
		{"AMQP port taken", func(c *config.Config) { c.AMQPAddr = taken.Addr().String() }, "amqp-addr", nil},
		{"HTTP port taken", func(c *config.Config) { c.HTTPAddr = taken.Addr().String() }, "http-addr", nil},
		{"no such address", func(c *config.Config) { c.AMQPAddr = "192.0.2.1:0" }, "amqp-addr", nil},
		{"no certificate", func(c *config.Config) {
			c.AMQPSAddr, c.TLSCert, c.TLSKey = "127.0.0.1:0", file, file
		}, "tls-cert", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			good := cfg
			tt.edit(&cfg)
			d, err := Start(cfg, nil)
			if err == nil {
				d.Kill()
				t.Fatal("Start = nil error, want a refusal")
			}
			var refused *StartError
			if !errors.As(err, &refused) || refused.Setting != tt.setting || refused.Hint() == "" {
				t.Errorf("Start = %v (%T), want a StartError about %s with a hint", err, err, tt.setting)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("Start = %v, want %v in it", err, tt.cause)
			}
			t.Logf("%v\nhint: %s", err, refused.Hint())
			// Nothing is left behind that would keep a good start from working.
			if cfg.DataDir == good.DataDir {
				if _, err := os.Stat(cfg.DataDir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("stat of the data directory: %v, want none after the refusal", err)
				}
				mustShutdown(t, mustStart(t, good))
			}
		})
	}
}

func TestInvalidConfiguration(t *testing.T) {
	t.Parallel()
	if _, err := Start(config.Config{}, nil); err == nil {
		t.Error("Start of an empty configuration = nil error")
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := testConfig(t)
	ended := make(chan error, 1)
	announced := make(chan *Daemon, 1)
	go func() { ended <- Run(ctx, cfg, slog.New(slog.DiscardHandler), func(d *Daemon) { announced <- d }) }()
	d := <-announced
	mustDial(t, d)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil after an orderly stop", err)
	}
	if _, err := net.Dial("tcp", d.AMQPAddr().String()); err == nil {
		t.Error("the port still answers after Run")
	}
}

// A listener that breaks ends Run with its error, in order.
func TestRunEndsWhenAListenerBreaks(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), testConfig(t), nil, func(d *Daemon) { d.noteBroken(broken) })
	}()
	if err := <-ended; !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
}

func TestStoreErrorHints(t *testing.T) {
	t.Parallel()
	for _, err := range []error{store.ErrLocked, fs.ErrPermission} {
		var e *StartError
		if !errors.As(storeError("d", err), &e) || e.Hint() == "" {
			t.Errorf("storeError(%v) has no hint", err)
		}
	}
}

// testConfig listens on free ports and keeps data in a directory of its own.
func testConfig(t *testing.T) config.Config {
	t.Helper()
	c := config.Default()
	c.DataDir = filepath.Join(t.TempDir(), "data")
	c.AMQPAddr, c.HTTPAddr = "127.0.0.1:0", "127.0.0.1:0"
	return c
}

func mustStart(t *testing.T, c config.Config) *Daemon {
	t.Helper()
	d, err := Start(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill) // does nothing after a Shutdown
	return d
}

func mustShutdown(t *testing.T, d *Daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

func mustDial(t *testing.T, d *Daemon) *amqp.Connection {
	t.Helper()
	conn, err := amqp.Dial("amqp://guest:guest@" + d.AMQPAddr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// mustChannel has publisher confirms on.
func mustChannel(t *testing.T, d *Daemon) *amqp.Channel {
	t.Helper()
	ch, err := mustDial(t, d).Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

// declare makes the delayed exchange due and the queue kept, bound to it with its name.
func declare(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	err := ch.ExchangeDeclare("due", "x-delayed-message", true, false, false, false,
		amqp.Table{"x-delayed-type": "direct"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("kept", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("kept", "kept", "due", false, nil); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, ch *amqp.Channel, exchange, key string, headers amqp.Table, body string) {
	t.Helper()
	c, err := ch.PublishWithDeferredConfirm(exchange, key, false, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: headers, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Wait() {
		t.Fatalf("message %q was not confirmed", body)
	}
}

func health(t *testing.T, d *Daemon) (int, httpapi.Health) {
	t.Helper()
	resp, err := http.Get("http://" + d.HTTPAddr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var h httpapi.Health
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, h
}
