package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/duepost/duepost/internal/store"
)

// Refusals. The reason is for the log; a client is told no more than that it was refused.
var (
	// ErrUnknownUser means that there is no such user.
	ErrUnknownUser = errors.New("no such user")
	// ErrWrongPassword means that the password is not the user's, or that it has none.
	ErrWrongPassword = errors.New("wrong password")
	// ErrNotLoopback means that this user may connect from this machine only.
	ErrNotLoopback = errors.New("user may connect from loopback only")
)

// Users is the set of users and their permissions. Safe for concurrent use.
type Users struct {
	store        *store.Store // nil keeps nothing
	loopbackOnly []string
	version      atomic.Uint64 // raised by every change

	changes sync.Mutex // held over a change, so that the log has them in the order they took place

	mu               sync.RWMutex // guards all below; a leaf lock
	users            map[string]User
	permissions      map[place]Permission
	topicPermissions map[topicPlace]TopicPermission
	grants           map[place]*grant
	topics           map[topicPlace]*grant
}

// place is where a permission holds.
type place struct{ vhost, user string }

type topicPlace struct {
	place
	exchange string
}

// NewUsers returns an empty set that is kept nowhere. The users named in loopbackOnly, whether
// they exist or not, are let in from loopback addresses only.
func NewUsers(loopbackOnly ...string) *Users {
	return &Users{
		loopbackOnly:     slices.Clone(loopbackOnly),
		users:            make(map[string]User),
		permissions:      make(map[place]Permission),
		topicPermissions: make(map[topicPlace]TopicPermission),
		grants:           make(map[place]*grant),
		topics:           make(map[topicPlace]*grant),
	}
}

// CheckPassword returns nil if the user exists, the password is its own and it may connect from
// there.
func (u *Users) CheckPassword(name, password string, from net.Addr) error {
	if err := u.CheckName(name, from); err != nil {
		return err
	}
	if user, _ := u.User(name); !user.Password.Matches(password) {
		return ErrWrongPassword
	}
	return nil
}

// CheckName returns nil if the user exists and may connect from there. It is all there is to
// check for a client whose certificate has proved its name.
func (u *Users) CheckName(name string, from net.Addr) error {
	if _, known := u.User(name); !known {
		return ErrUnknownUser
	}
	if slices.Contains(u.loopbackOnly, name) && !isLocal(from) {
		return ErrNotLoopback
	}
	return nil
}

// isLocal is true for loopback addresses and for whatever has no IP address, which cannot come
// from another machine: pipes and Unix sockets.
func isLocal(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// User returns the user of that name, if there is one.
func (u *Users) User(name string) (User, bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	user, ok := u.users[name]
	return user, ok
}

// Permission returns what a user may do in a virtual host, if it may do anything there.
func (u *Users) Permission(user, vhost string) (Permission, bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	p, ok := u.permissions[place{vhost, user}]
	return p, ok
}

// Records returns everything, in the order of names.
func (u *Users) Records() Records {
	u.mu.RLock()
	defer u.mu.RUnlock()
	var r Records
	for _, user := range u.users {
		r.Users = append(r.Users, user)
	}
	for _, p := range u.permissions {
		r.Permissions = append(r.Permissions, p)
	}
	for _, p := range u.topicPermissions {
		r.TopicPermissions = append(r.TopicPermissions, p)
	}
	slices.SortFunc(r.Users, func(a, b User) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Permissions, func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.VHost, b.VHost))
	})
	slices.SortFunc(r.TopicPermissions, func(a, b TopicPermission) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.VHost, b.VHost),
			cmp.Compare(a.Exchange, b.Exchange))
	})
	return r
}

// commit gives a change to the store and makes it known. It is called under changes.
func (u *Users) commit(b *store.Batch, apply func()) (lsn store.LSN, err error) {
	if u.store != nil {
		if lsn, err = u.store.Commit(b); err != nil {
			return 0, fmt.Errorf("store users: %w", err)
		}
	}
	u.mu.Lock()
	apply()
	u.mu.Unlock()
	u.version.Add(1)
	return lsn, nil
}

// wait blocks until a change is on stable storage.
func (u *Users) wait(lsn store.LSN) error {
	if lsn == 0 {
		return nil
	}
	if err := u.store.Wait(context.Background(), lsn); err != nil {
		return fmt.Errorf("store users: %w", err)
	}
	return nil
}
