package daemon

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/httpapi"
	"github.com/duepost/duepost/internal/store"
)

// flakyDisk is the real disk until told otherwise.
type flakyDisk struct {
	store.FS
	full, broken *atomic.Bool
}

func newFlakyDisk() flakyDisk {
	return flakyDisk{FS: store.OSFS{}, full: new(atomic.Bool), broken: new(atomic.Bool)}
}

func (d flakyDisk) Create(name string, size int64) (store.File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	f, err := d.FS.Create(name, size)
	return flakyFile{f, d.broken}, err
}

func (d flakyDisk) Open(name string) (store.File, error) {
	f, err := d.FS.Open(name)
	return flakyFile{f, d.broken}, err
}

type flakyFile struct {
	store.File
	broken *atomic.Bool
}

func (f flakyFile) Datasync() error {
	if f.broken.Load() {
		return syscall.EIO
	}
	return f.File.Datasync()
}

// A disk that cannot sync ends all confirms, and /healthz says so.
func TestBrokenDiskShowsInHealth(t *testing.T) {
	t.Parallel()
	disk := newFlakyDisk()
	d, err := StartOn(Machine{Disk: disk}, testConfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	ch := mustChannel(t, d)
	declare(t, ch)
	disk.broken.Store(true)
	c, err := ch.PublishWithDeferredConfirm("due", "kept", false, false,
		amqp.Publishing{Headers: amqp.Table{"x-delay": int32(1)}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Wait() {
		t.Error("a message was confirmed by a broken disk")
	}
	code, h := health(t, d)
	if code != http.StatusServiceUnavailable || h.Status != httpapi.Failed || !strings.Contains(h.Reason, "input/output error") {
		t.Errorf("/healthz = %d %+v, want 503 failed with the disk's error", code, h)
	}
	if err := d.Shutdown(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("Shutdown = %v, want the disk's error: not everything is durable", err)
	}
}

// A full disk holds publishers back until there is room again.
func TestFullDiskBlocksPublishers(t *testing.T) {
	t.Parallel()
	disk := newFlakyDisk()
	d, err := StartOn(Machine{Disk: disk}, testConfig(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	conn := mustDial(t, d)
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 8))
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	declare(t, ch)
	disk.full.Store(true)
	var stop atomic.Bool
	published := make(chan error, 1)
	go func() {
		var err error
		for body := make([]byte, 1<<20); err == nil && !stop.Load(); {
			err = ch.Publish("", "kept", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
		}
		published <- err
	}()
	await := func(active bool) {
		t.Helper()
		select {
		case b := <-blocked:
			if b.Active != active {
				t.Fatalf("connection.blocked = %+v, want active %v", b, active)
			}
		case <-time.After(patience):
			t.Fatalf("no connection.blocked with active %v after %v", active, patience)
		}
	}
	await(true)
	if h := d.Health(); h.Status != httpapi.Ready {
		t.Errorf("Health() = %+v, want ready: consumers are served", h)
	}
	stop.Store(true)
	disk.full.Store(false)
	await(false)
	if err := <-published; err != nil {
		t.Errorf("publish = %v, want it to have waited", err)
	}
	mustShutdown(t, d)
}
