package auth

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/duepost/duepost/internal/store"
)

// What is kept is definitions of the store; see docs/FORMATS.md, section Definitions. Names within
// a key have their length before them, so that no two keys collide. A value is the version and
// JSON.
const (
	definitionVersion = 1

	beganDefinition  = "access" // there: a first user was made once
	userPrefix       = "user/"
	permissionPrefix = "permission/"
	topicPrefix      = "topic-permission/"
)

func definitionKey(prefix string, names ...string) string {
	b := []byte(prefix)
	for _, name := range names {
		b = append(append(b, byte(len(name))), name...)
	}
	return string(b)
}

func userDefinition(name string) string   { return definitionKey(userPrefix, name) }
func permissionDefinition(p place) string { return definitionKey(permissionPrefix, p.vhost, p.user) }
func topicDefinition(p topicPlace) string {
	return definitionKey(topicPrefix, p.vhost, p.user, p.exchange)
}

// define puts records into a batch.
func (r *Records) define(b *store.Batch) error {
	b.Put(beganDefinition, []byte{definitionVersion})
	for i := range r.Users {
		if err := put(b, userDefinition(r.Users[i].Name), &r.Users[i]); err != nil {
			return err
		}
	}
	for i := range r.Permissions {
		p := &r.Permissions[i]
		if err := put(b, permissionDefinition(place{p.VHost, p.User}), p); err != nil {
			return err
		}
	}
	for i := range r.TopicPermissions {
		p := &r.TopicPermissions[i]
		if err := put(b, topicDefinition(topicPlace{place{p.VHost, p.User}, p.Exchange}), p); err != nil {
			return err
		}
	}
	return nil
}

func put(b *store.Batch, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %q: %w", key, err)
	}
	b.Put(key, append([]byte{definitionVersion}, text...))
	return nil
}

// Open returns the users that the store found, and keeps every change in it. began is false on an
// empty directory: there never was a user.
func Open(s *store.Store, found []store.Definition, loopbackOnly ...string) (u *Users, began bool, err error) {
	u = NewUsers(loopbackOnly...)
	var r Records
	for _, d := range found {
		switch {
		case d.Key == beganDefinition:
			began = true
		case strings.HasPrefix(d.Key, userPrefix):
			r.Users, err = take(r.Users, d)
		case strings.HasPrefix(d.Key, permissionPrefix):
			r.Permissions, err = take(r.Permissions, d)
		case strings.HasPrefix(d.Key, topicPrefix):
			r.TopicPermissions, err = take(r.TopicPermissions, d)
		}
		if err != nil {
			return nil, began, err
		}
	}
	if err := u.Put(r); err != nil {
		return nil, began, fmt.Errorf("read users: %w", err)
	}
	u.store = s // from here on changes are kept
	return u, began, nil
}

func take[T any](list []T, d store.Definition) ([]T, error) {
	var v T
	if len(d.Value) == 0 || d.Value[0] != definitionVersion {
		return nil, fmt.Errorf("read definition %q: unknown version", d.Key)
	}
	if err := json.Unmarshal(d.Value[1:], &v); err != nil {
		return nil, fmt.Errorf("read definition %q: %w", d.Key, err)
	}
	return append(list, v), nil
}
