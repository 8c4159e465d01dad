package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
)

// AllVHosts in the list of a [Fleet] stands for every virtual host, also those made later.
const AllVHosts = "all"

// Fleet is relays in several virtual hosts of one RabbitMQ. One that cannot work holds up no other.
type Fleet struct {
	cfg       Config
	uris      []amqp.URI // of cfg.URLs
	vhosts    []string
	lookEvery time.Duration // at the virtual hosts

	mu     sync.Mutex // guards relays
	relays map[string]*member
}

// member is a relay of a fleet.
type member struct {
	*Relay
	stop  context.CancelFunc
	ended chan struct{}
}

// NewFleet makes a fleet for the virtual hosts named, or for that of cfg.URLs if there are none. To see
// all the management API is needed.
func NewFleet(cfg Config, vhosts []string) (*Fleet, error) {
	if len(cfg.URLs) == 0 {
		return nil, errors.New("make relay: no URL of a RabbitMQ is given")
	}
	f := &Fleet{cfg: cfg, vhosts: vhosts, lookEvery: lookEvery, relays: map[string]*member{}}
	for _, url := range cfg.URLs {
		uri, err := amqp.ParseURI(url)
		if err != nil {
			return nil, fmt.Errorf("read URL: %w", err)
		}
		f.uris = append(f.uris, uri)
	}
	if cfg.Log == nil {
		f.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if len(vhosts) == 0 {
		f.vhosts = []string{f.uris[0].Vhost}
	}
	if slices.Contains(f.vhosts, AllVHosts) && cfg.Management == "" {
		return nil, errors.New("make relay: to find all virtual hosts the management API is needed")
	}
	return f, nil
}

// Relays are the relays by virtual host.
func (f *Fleet) Relays() map[string]*Relay {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]*Relay, len(f.relays))
	for vhost, m := range f.relays {
		all[vhost] = m.Relay
	}
	return all
}

// Run works until ctx ends. The error is that of a single relay which RabbitMQ refuses at first, see
// [Relay.Run]. Where there are several, refusals are logged and tried again.
func (f *Fleet) Run(ctx context.Context) error {
	if len(f.vhosts) == 1 && f.vhosts[0] != AllVHosts {
		r := f.make(f.vhosts[0])
		f.mu.Lock()
		f.relays[f.vhosts[0]] = &member{Relay: r}
		f.mu.Unlock()
		return r.Run(ctx)
	}
	defer f.stopAll()
	look := time.NewTicker(f.lookEvery)
	defer look.Stop()
	for {
		wanted, err := f.wanted(ctx)
		if err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn("virtual hosts not found out", "err", err, "retry_in", f.lookEvery)
		} else {
			f.adjust(ctx, wanted)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// wanted are the virtual hosts that there should be a relay for.
func (f *Fleet) wanted(ctx context.Context) ([]string, error) {
	if !slices.Contains(f.vhosts, AllVHosts) {
		return f.vhosts, nil
	}
	var all []error
	for _, uri := range f.uris {
		names, err := vhosts(ctx, Management(uri, f.cfg.Management))
		if err == nil {
			return names, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}

// vhosts asks for the virtual hosts that the user may see.
func vhosts(ctx context.Context, api *management.Client) (names []string, err error) {
	body, err := api.Do(ctx, management.Request{Method: http.MethodGet, Path: "vhosts"})
	if err != nil {
		return nil, fmt.Errorf("look at virtual hosts: %w", err)
	}
	var all []struct{ Name string }
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("look at virtual hosts: %w", err)
	}
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names, nil
}

// adjust starts relays that are missing or have been refused, and stops those of virtual hosts
// that are gone.
func (f *Fleet) adjust(ctx context.Context, wanted []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for vhost, m := range f.relays {
		if !slices.Contains(wanted, vhost) {
			m.stop()
			<-m.ended
			delete(f.relays, vhost)
		}
	}
	for _, vhost := range wanted {
		if m := f.relays[vhost]; m != nil && !m.hasEnded() {
			continue
		}
		f.relays[vhost] = f.start(ctx, vhost)
	}
}

func (m *member) hasEnded() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

// start runs the relay of a virtual host.
func (f *Fleet) start(ctx context.Context, vhost string) *member {
	ctx, stop := context.WithCancel(ctx)
	m := &member{Relay: f.make(vhost), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		if err := m.Run(ctx); err != nil {
			m.log.Error("relay refused", "err", err, "retry_in", f.lookEvery)
		}
	}()
	return m
}

// make makes the relay of a virtual host.
func (f *Fleet) make(vhost string) *Relay {
	cfg := f.cfg
	cfg.URLs = nil
	for _, uri := range f.uris {
		uri.Vhost = vhost
		cfg.URLs = append(cfg.URLs, uri.String())
	}
	r := New(cfg)
	r.log = r.log.With("vhost", vhost)
	return r
}

func (f *Fleet) stopAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.relays {
		m.stop()
		<-m.ended
	}
}
