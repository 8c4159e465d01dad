package auth

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/store"
)

// some is two users with rights in two virtual hosts.
func some() Records {
	return Records{
		Users: []User{
			{Name: "a", Password: PasswordHash{SHA256, "PB/TC4oBskyKK4eSPfWBYob+bFt7tDiBYOtBeFwbmCM6LWgF"}, Tags: []string{Administrator, "night shift"}},
			{Name: "b"},
		},
		Permissions: []Permission{
			{User: "a", VHost: "v", Configure: ".*", Write: "w", Read: "r"},
			{User: "a", VHost: "w"},
			{User: "b", VHost: "v"},
		},
		TopicPermissions: []TopicPermission{
			{User: "a", VHost: "v", Exchange: "t", Write: "x"},
			{User: "a", VHost: "w", Exchange: "t"},
			{User: "b", VHost: "v", Exchange: ""},
			{User: "b", VHost: "v", Exchange: "t"},
		},
	}
}

func TestDeletedUserIsUnknownAndHasNoRights(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, some())
	if existed, err := u.DeleteUser("a"); !existed || err != nil {
		t.Errorf("DeleteUser = %t, %v", existed, err)
	}
	if err := u.CheckName("a", nil); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("CheckName = %v, want %v", err, ErrUnknownUser)
	}
	if existed, err := u.DeleteUser("a"); existed || err != nil {
		t.Errorf("a second DeleteUser = %t, %v", existed, err)
	}
	want := some()
	want.Users, want.Permissions, want.TopicPermissions = want.Users[1:], want.Permissions[2:], want.TopicPermissions[2:]
	if diff := cmp.Diff(want, u.Records()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if u.Rights("a", "v").MayEnter() || u.Rights("a", "v").HasTopics("t") {
		t.Error("a deleted user still has rights")
	}
}

func TestForgottenVHostLeavesNoRights(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, some())
	if err := u.ForgetVHost("v"); err != nil {
		t.Fatal(err)
	}
	want := some()
	if diff := cmp.Diff(want.Permissions[1:2], u.Records().Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.TopicPermissions[1:2], u.Records().TopicPermissions); diff != "" {
		t.Errorf("topic permissions (-want +got):\n%s", diff)
	}
}

func TestDeleteTopicPermissions(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	mustPut(t, u, some())
	if existed, err := u.DeleteTopicPermission("b", "v", ""); !existed || err != nil {
		t.Errorf("DeleteTopicPermission = %t, %v", existed, err)
	}
	if u.Rights("b", "v").HasTopics("") || !u.Rights("b", "v").HasTopics("t") {
		t.Error("one topic permission was to go, the other to stay")
	}
	if existed, err := u.DeleteTopicPermissions("b", "v"); !existed || err != nil {
		t.Errorf("DeleteTopicPermissions = %t, %v", existed, err)
	}
	if u.Rights("b", "v").HasTopics("t") || !u.Rights("a", "v").HasTopics("t") {
		t.Error("all topic permissions of b were to go, and those of a to stay")
	}
}

func TestUsersSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openStore(t, dir)
	u, began, err := Open(s, s.Recovered().Definitions)
	if err != nil || began {
		t.Fatalf("Open of an empty directory: began %t, %v", began, err)
	}
	want := some()
	want.Users = append(want.Users, User{Name: "c"})
	mustPut(t, u, want)
	if _, err := u.DeleteUser("c"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir)
	defer s.Close()
	u, began, err = Open(s, s.Recovered().Definitions)
	if err != nil || !began {
		t.Fatalf("Open: began %t, %v", began, err)
	}
	want.Users = want.Users[:2]
	if diff := cmp.Diff(want, u.Records()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !u.Rights("a", "v").MayWrite("w") || !u.Rights("a", "v").MayWriteTopic("t", "x") {
		t.Error("rights did not come back")
	}
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(store.OS(), dir, store.Options{SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
