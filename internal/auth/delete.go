package auth

import (
	"maps"

	"github.com/duepost/duepost/internal/store"
)

// DeleteUser removes a user and all its permissions, and reports whether there was such a user.
// Connections it has are for others to close.
func (u *Users) DeleteUser(name string) (existed bool, err error) {
	return u.delete(removal{
		user:  func(n string) bool { return n == name },
		at:    func(p place) bool { return p.user == name },
		topic: func(p topicPlace) bool { return p.user == name },
	})
}

// DeletePermission takes all rights in a virtual host from a user, and reports whether it had any.
func (u *Users) DeletePermission(user, vhost string) (existed bool, err error) {
	return u.delete(removal{at: func(p place) bool { return p == place{vhost, user} }})
}

// DeleteTopicPermissions removes all topic permissions of a user in a virtual host, so that topics
// do not limit it any more, and reports whether there were any.
func (u *Users) DeleteTopicPermissions(user, vhost string) (existed bool, err error) {
	return u.delete(removal{topic: func(p topicPlace) bool { return p.place == place{vhost, user} }})
}

// DeleteTopicPermission is DeleteTopicPermissions for one exchange.
func (u *Users) DeleteTopicPermission(user, vhost, exchange string) (existed bool, err error) {
	return u.delete(removal{topic: func(p topicPlace) bool { return p == topicPlace{place{vhost, user}, exchange} }})
}

// ForgetVHost removes all permissions in a virtual host. It is called before one is deleted, so
// that none is left for another of that name, and before one is made, in case that was cut short.
func (u *Users) ForgetVHost(vhost string) error {
	_, err := u.delete(removal{
		at:    func(p place) bool { return p.vhost == vhost },
		topic: func(p topicPlace) bool { return p.vhost == vhost },
	})
	return err
}

// removal says what goes; nil is nothing of that kind.
type removal struct {
	user  func(name string) bool
	at    func(place) bool
	topic func(topicPlace) bool
}

func (u *Users) delete(r removal) (existed bool, err error) {
	existed, lsn, err := u.remove(r)
	if err != nil {
		return false, err
	}
	return existed, u.wait(lsn)
}

func (u *Users) remove(r removal) (existed bool, lsn store.LSN, err error) {
	u.changes.Lock()
	defer u.changes.Unlock()
	var b store.Batch
	for name := range u.users { // read without mu: nobody else may change it
		if r.user != nil && r.user(name) {
			b.Delete(userDefinition(name))
		}
	}
	for at := range u.permissions {
		if r.at != nil && r.at(at) {
			b.Delete(permissionDefinition(at))
		}
	}
	for at := range u.topicPermissions {
		if r.topic != nil && r.topic(at) {
			b.Delete(topicDefinition(at))
		}
	}
	if b.Len() == 0 {
		return false, 0, nil
	}
	lsn, err = u.commit(&b, func() { u.removeLocked(r) })
	return true, lsn, err
}

func (u *Users) removeLocked(r removal) {
	if r.user != nil {
		maps.DeleteFunc(u.users, func(name string, _ User) bool { return r.user(name) })
	}
	if r.at != nil {
		maps.DeleteFunc(u.permissions, func(p place, _ Permission) bool { return r.at(p) })
		maps.DeleteFunc(u.grants, func(p place, _ *grant) bool { return r.at(p) })
	}
	if r.topic != nil {
		maps.DeleteFunc(u.topicPermissions, func(p topicPlace, _ TopicPermission) bool { return r.topic(p) })
		maps.DeleteFunc(u.topics, func(p topicPlace, _ *grant) bool { return r.topic(p) })
	}
}
