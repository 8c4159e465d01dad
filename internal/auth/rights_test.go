package auth

import (
	"errors"
	"testing"
)

func TestPermissionsAreRegularExpressions(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, Records{
		Users:       []User{{Name: "u"}},
		Permissions: []Permission{{User: "u", VHost: "v", Configure: "^orders", Write: "o", Read: ""}},
	})
	for i, tt := range []struct {
		may   func(*Rights, string) bool
		vhost string
		name  string
		want  bool
	}{
		{(*Rights).MayConfigure, "v", "orders.eu", true},
		{(*Rights).MayConfigure, "v", "my orders", false},
		{(*Rights).MayWrite, "v", "my orders", true}, // anywhere in the name
		{(*Rights).MayWrite, "v", "amq.default", false},
		{(*Rights).MayRead, "v", "orders", false}, // an empty pattern permits the empty name only
		{(*Rights).MayRead, "v", "", true},
		{(*Rights).MayWrite, "w", "orders", false}, // no permission there
	} {
		if got := tt.may(u.Rights("u", tt.vhost), tt.name); got != tt.want {
			t.Errorf("case %d, %q in %s: %t, want %t", i, tt.name, tt.vhost, got, tt.want)
		}
	}
	if !u.Rights("u", "v").MayEnter() || u.Rights("u", "w").MayEnter() || u.Rights("x", "v").MayEnter() {
		t.Error("who has a permission in a virtual host may enter it, and nobody else")
	}
}

func TestTopicsAreLimitedOnlyByTopicPermissions(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, Records{
		Users: []User{{Name: "u.x"}},
		TopicPermissions: []TopicPermission{
			{User: "u.x", VHost: "v", Exchange: "t", Write: "^{username}\\.{vhost}$", Read: "^a"}},
	})
	r := u.Rights("u.x", "v")
	if r.HasTopics("other") || !r.HasTopics("t") {
		t.Error("HasTopics must tell the exchange that has topic permissions")
	}
	for _, tt := range []struct {
		may           func(r *Rights, exchange, key string) bool
		exchange, key string
		want          bool
	}{
		{(*Rights).MayWriteTopic, "t", "u.x.v", true},
		{(*Rights).MayWriteTopic, "t", "u-x.v", false}, // names are texts, not patterns
		{(*Rights).MayReadTopic, "t", "abc", true},
		{(*Rights).MayReadTopic, "t", "xabc", false},
		{(*Rights).MayWriteTopic, "other", "anything", true},
	} {
		if got := tt.may(r, tt.exchange, tt.key); got != tt.want {
			t.Errorf("%s %s: %t, want %t", tt.exchange, tt.key, got, tt.want)
		}
	}
}

func TestChangeOfRightsCountsAtOnce(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, Records{Users: []User{{Name: "u"}}})
	r := u.Rights("u", "v")
	before := r.Version()
	mustPut(t, u, Records{Permissions: []Permission{{User: "u", VHost: "v", Write: ".*"}}})
	if r.Version() == before || !r.MayWrite("x") {
		t.Error("a permission that was set is not known")
	}
	before = r.Version()
	if existed, err := u.DeletePermission("u", "v"); !existed || err != nil {
		t.Errorf("DeletePermission = %t, %v", existed, err)
	}
	if r.Version() == before || r.MayWrite("x") {
		t.Error("a permission that was deleted is still known")
	}
}

func TestOnlyImpersonatorsMayImpersonate(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, Records{Users: []User{{Name: "a", Tags: []string{Administrator}}, {Name: "i", Tags: []string{Impersonator}}}})
	if u.Rights("a", "v").MayImpersonate() || !u.Rights("i", "v").MayImpersonate() {
		t.Error("the tag impersonator, and no other, lets impersonate")
	}
}

func TestPutIsAllOrNothing(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	err := u.Put(Records{
		Users:       []User{{Name: "u"}},
		Permissions: []Permission{{User: "u", VHost: "v", Configure: "("}},
	})
	var bad *PatternError
	if !errors.As(err, &bad) || bad.Part != "configure" || bad.Pattern != "(" {
		t.Errorf("Put = %v, want a PatternError about configure", err)
	}
	err = u.Put(Records{
		Users:            []User{{Name: "u"}},
		TopicPermissions: []TopicPermission{{User: "nobody", VHost: "v"}},
	})
	if !errors.Is(err, ErrUnknownUser) {
		t.Errorf("Put = %v, want %v", err, ErrUnknownUser)
	}
	if r := u.Records(); len(r.Users)+len(r.Permissions)+len(r.TopicPermissions) > 0 {
		t.Errorf("after refused puts there is %v, want nothing", r)
	}
}
