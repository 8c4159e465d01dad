package auth

import (
	"fmt"
	"maps"
	"slices"

	"github.com/duepost/duepost/internal/store"
)

// What of a user can be limited.
const (
	MaxConnections = "max-connections"
	MaxChannels    = "max-channels" // of all its connections
)

// Limits are limits of a user by name. A negative one is none. [rmq user limits]
type Limits map[string]int64

// Unknown returns the names of limits that there are not, in order.
func (l Limits) Unknown() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l)), func(name string) bool {
		return name == MaxConnections || name == MaxChannels
	})
}

// Limit returns a limit of a user; negative if there is none.
func (u *Users) Limit(user, name string) int64 {
	known, _ := u.User(user)
	if n, ok := known.Limits[name]; ok {
		return n
	}
	return -1
}

// SetLimit sets a limit of a user, which counts for what is opened from then on.
func (u *Users) SetLimit(user, name string, n int64) error {
	return u.changeLimits(user, func(l Limits) { l[name] = n })
}

// ClearLimit lifts a limit of a user, if there is one.
func (u *Users) ClearLimit(user, name string) error {
	return u.changeLimits(user, func(l Limits) { delete(l, name) })
}

// changeLimits replaces the limits of a user by a changed copy.
func (u *Users) changeLimits(user string, change func(Limits)) error {
	lsn, err := u.replace(user, func(known *User) {
		if known.Limits = maps.Clone(known.Limits); known.Limits == nil {
			known.Limits = make(Limits)
		}
		change(known.Limits)
	})
	if err != nil {
		return err
	}
	return u.wait(lsn)
}

// replace replaces a user by a changed one. Nothing else changes meanwhile.
func (u *Users) replace(user string, change func(*User)) (store.LSN, error) {
	u.changes.Lock()
	defer u.changes.Unlock()
	known, ok := u.User(user)
	if !ok {
		return 0, fmt.Errorf("limit user '%s': %w", user, ErrUnknownUser)
	}
	change(&known)
	return u.putLocked(&Records{Users: []User{known}})
}
