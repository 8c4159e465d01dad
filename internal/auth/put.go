package auth

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/duepost/duepost/internal/store"
)

// Put adds records or replaces those of the same names, all of them or none. Permissions need a
// user, who may be among the records: else the error is ErrUnknownUser. A user without limits keeps
// those that it has.
func (u *Users) Put(r Records) error {
	r.Users = slices.Clone(r.Users) // limits are filled in
	lsn, err := u.put(&r)
	if err != nil {
		return err
	}
	return u.wait(lsn)
}

func (u *Users) put(r *Records) (store.LSN, error) {
	u.changes.Lock()
	defer u.changes.Unlock()
	for i := range r.Users {
		if known, ok := u.User(r.Users[i].Name); ok && r.Users[i].Limits == nil {
			r.Users[i].Limits = known.Limits
		}
	}
	return u.putLocked(r)
}

// putLocked is called under changes.
func (u *Users) putLocked(r *Records) (store.LSN, error) {
	add, err := u.prepare(r)
	if err != nil {
		return 0, err
	}
	var b store.Batch
	if err := r.define(&b); err != nil {
		return 0, err
	}
	return u.commit(&b, func() { u.addLocked(add) })
}

// addition is records that were checked, with their patterns compiled.
type addition struct {
	*Records
	grants []*grant // of Permissions
	topics []*grant // of TopicPermissions
}

// prepare checks records that are to be put.
func (u *Users) prepare(r *Records) (*addition, error) {
	add := &addition{Records: r}
	added := make(map[string]bool)
	for i := range r.Users {
		if err := r.Users[i].Validate(); err != nil {
			return nil, err
		}
		added[r.Users[i].Name] = true
	}
	for i := range r.Permissions {
		p := &r.Permissions[i]
		if err := cmp.Or(u.checkOwner(p.User, p.VHost, added), p.Validate()); err != nil {
			return nil, err
		}
		g, err := newGrant(p.Configure, p.Write, p.Read)
		if err != nil {
			return nil, err
		}
		add.grants = append(add.grants, g)
	}
	for i := range r.TopicPermissions {
		p := &r.TopicPermissions[i]
		if err := cmp.Or(u.checkOwner(p.User, p.VHost, added), p.Validate()); err != nil {
			return nil, err
		}
		if len(p.Exchange) > maxName {
			return nil, fmt.Errorf("permit user '%s': name of exchange has %d bytes, %d are allowed",
				p.User, len(p.Exchange), maxName)
		}
		g, err := newGrant("", withVariables(p.Write, p.User, p.VHost), withVariables(p.Read, p.User, p.VHost))
		if err != nil {
			return nil, err
		}
		add.topics = append(add.topics, g)
	}
	return add, nil
}

func (u *Users) checkOwner(user, vhost string, added map[string]bool) error {
	if _, known := u.User(user); !known && !added[user] {
		return fmt.Errorf("permit user '%s': %w", user, ErrUnknownUser)
	}
	if vhost == "" || len(vhost) > maxName {
		return fmt.Errorf("permit user '%s': name of virtual host has %d bytes, must have 1 to %d",
			user, len(vhost), maxName)
	}
	return nil
}

func (u *Users) addLocked(a *addition) {
	for _, user := range a.Users {
		u.users[user.Name] = user
	}
	for i, p := range a.Permissions {
		at := place{p.VHost, p.User}
		u.permissions[at], u.grants[at] = p, a.grants[i]
	}
	for i, p := range a.TopicPermissions {
		at := topicPlace{place{p.VHost, p.User}, p.Exchange}
		u.topicPermissions[at], u.topics[at] = p, a.topics[i]
	}
}
