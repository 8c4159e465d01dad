package admin

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay"
	"github.com/duepost/duepost/internal/relay/topology"
)

// Status is what waits in a virtual host, and who sees to it.
type Status struct {
	VHost string `json:"vhost"`
	// Waiting counts what is not due yet, with what relays hold at the moment: in Intake and Rescue
	// what no relay has put on the wheel, the rest on the wheel. Parked waits for somebody's hand.
	Waiting int `json:"waiting"`
	Intake  int `json:"intake"`
	Rescue  int `json:"rescue"`
	Parked  int `json:"parked"`
	// NextDue is the beginning of the first slot that is not empty; nil if all are.
	NextDue *time.Time `json:"next_due"`
	// Timeline says when what is on the wheel is due.
	Timeline []relay.Bin `json:"timeline"`
	// Relays are the relays that are alive, by name, with how many slots of the wheel each has.
	Relays map[string]int `json:"relays"`
}

// Read asks the management API, which may be some seconds behind.
func Read(ctx context.Context, api *management.Client, vhost string) (Status, error) {
	p, err := topology.CountPending(ctx, api, vhost)
	if err != nil {
		return Status{}, err
	}
	return Of(&p, vhost), nil
}

// Of makes a status of counts.
func Of(p *topology.Pending, vhost string) Status {
	s := Status{
		VHost: vhost, Waiting: p.Waiting(), Intake: p.Intake, Rescue: p.Rescue, Parked: p.Parked,
		Timeline: relay.Timeline(p, time.Now()), Relays: p.Relays,
	}
	if len(s.Timeline) > 0 {
		s.NextDue = &s.Timeline[0].From
	}
	return s
}

// Member is what a relay of this process does.
type Member struct {
	VHost       string `json:"vhost"`
	Name        string `json:"name"`
	AtWork      bool   `json:"at_work"`
	Alarm       string `json:"alarm"`
	Interceptor bool   `json:"interceptor"`
	Sessions    uint64 `json:"sessions"`
	Moved       uint64 `json:"moved"`
	Released    uint64 `json:"released"`
	Parked      uint64 `json:"parked"`
}

// members are the relays of this process, by virtual host.
func members(f *relay.Fleet) []Member {
	relays := f.Relays()
	all := []Member{}
	for _, vhost := range slices.Sorted(maps.Keys(relays)) {
		r := relays[vhost]
		s := r.Stats()
		all = append(all, Member{
			VHost: vhost, Name: r.Name(), AtWork: r.IsAtWork(), Alarm: r.Alarm(), Interceptor: r.IsStamping(),
			Sessions: s.Sessions.Load(), Moved: s.Moved.Load(), Released: s.Released.Load(), Parked: s.Parked.Load(),
		})
	}
	return all
}
