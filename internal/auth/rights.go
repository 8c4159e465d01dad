package auth

import (
	"regexp"
	"strings"

	"github.com/duepost/duepost/internal/pattern"
)

// access is a kind of right. Which operation needs which is not known here.
type access uint8

const (
	configure access = iota
	write
	read
	accesses = iota
)

// grant is a permission, or a topic permission, that is ready to be asked.
type grant struct {
	patterns [accesses]*pattern.Pattern // nil where there is no such right
}

func newGrant(toConfigure, toWrite, toRead string) (*grant, error) {
	g := new(grant)
	for i, text := range [accesses]string{configure: toConfigure, write: toWrite, read: toRead} {
		p, err := compile(text)
		if err != nil {
			return nil, err
		}
		g.patterns[i] = p
	}
	return g, nil
}

// withVariables fills in what a topic permission may hold, as text and not as a pattern.
func withVariables(text, user, vhost string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	return strings.NewReplacer("{username}", regexp.QuoteMeta(user), "{vhost}", regexp.QuoteMeta(vhost)).Replace(text)
}

// Rights are what one user may do in one virtual host, at any time it is asked.
type Rights struct {
	users       *Users
	user, vhost string
}

// Rights returns those of a user in a virtual host; neither must exist.
func (u *Users) Rights(user, vhost string) *Rights { return &Rights{u, user, vhost} }

// Version is another number after a change that may change an answer. It costs an atomic load.
func (r *Rights) Version() uint64 { return r.users.version.Load() }

// MayEnter reports whether the user has any permission in the virtual host.
func (r *Rights) MayEnter() bool {
	r.users.mu.RLock()
	defer r.users.mu.RUnlock()
	_, ok := r.users.grants[place{r.vhost, r.user}]
	return ok
}

// MayConfigure reports whether the user may declare and delete the queue or exchange. The default
// exchange goes by the name amq.default, here and below.
func (r *Rights) MayConfigure(name string) bool { return r.permits(configure, name) }

// MayWrite reports whether the user may put something into the queue or exchange.
func (r *Rights) MayWrite(name string) bool { return r.permits(write, name) }

// MayRead reports whether the user may take something out of the queue or exchange.
func (r *Rights) MayRead(name string) bool { return r.permits(read, name) }

func (r *Rights) permits(a access, name string) bool {
	r.users.mu.RLock()
	g := r.users.grants[place{r.vhost, r.user}]
	r.users.mu.RUnlock()
	return g != nil && g.patterns[a].Matches(name)
}

// HasTopics reports whether a topic permission limits what the user may do with the exchange.
func (r *Rights) HasTopics(exchange string) bool {
	r.users.mu.RLock()
	defer r.users.mu.RUnlock()
	return r.users.topics[topicPlace{place{r.vhost, r.user}, exchange}] != nil
}

// MayWriteTopic reports whether the user may publish with that routing key, for all that topic
// permissions say: without one it may. [rmq topic authorisation]
func (r *Rights) MayWriteTopic(exchange, key string) bool {
	return r.permitsTopic(write, exchange, key)
}

// MayReadTopic reports the same of bindings with that routing key.
func (r *Rights) MayReadTopic(exchange, key string) bool { return r.permitsTopic(read, exchange, key) }

func (r *Rights) permitsTopic(a access, exchange, key string) bool {
	r.users.mu.RLock()
	g := r.users.topics[topicPlace{place{r.vhost, r.user}, exchange}]
	r.users.mu.RUnlock()
	return g == nil || g.patterns[a].Matches(key)
}

// MayImpersonate reports whether the user may publish with the user-id of another. [rmq validated
// user-id]
func (r *Rights) MayImpersonate() bool {
	user, _ := r.users.User(r.user)
	return user.HasTag(Impersonator)
}
