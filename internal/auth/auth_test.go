package auth

import (
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"testing"
)

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	u := NewUsers("guest")
	u.Put("guest", HashPassword("guest"))
	u.Put("orders", HashPassword("s3cret"))
	u.Put("nobody", "")
	here, there := tcp(t, "127.0.0.1:1"), tcp(t, "192.0.2.7:1")
	pipe, _ := net.Pipe()
	for _, tt := range []struct {
		name, user, password string
		from                 net.Addr
		want                 error
	}{
		{"guest from here", "guest", "guest", here, nil},
		{"guest over IPv6", "guest", "guest", tcp(t, "[::1]:1"), nil},
		{"guest over mapped IPv4", "guest", "guest", tcp(t, "[::ffff:127.0.0.1]:1"), nil},
		{"guest through a pipe", "guest", "guest", pipe.LocalAddr(), nil},
		{"guest from elsewhere", "guest", "guest", there, ErrNotLoopback},
		{"other from elsewhere", "orders", "s3cret", there, nil},
		{"wrong password", "orders", "S3cret", here, ErrWrongPassword},
		{"empty password", "orders", "", here, ErrWrongPassword},
		{"no password set", "nobody", "", here, ErrWrongPassword},
		{"unknown", "root", "root", here, ErrUnknownUser},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := u.CheckPassword(tt.user, tt.password, tt.from); !errors.Is(err, tt.want) {
				t.Errorf("CheckPassword = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestDeletedUserIsUnknown(t *testing.T) {
	t.Parallel()
	u := NewUsers()
	u.Put("a", HashPassword("a"))
	u.Delete("a")
	if err := u.CheckName("a", nil); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("CheckName = %v, want %v", err, ErrUnknownUser)
	}
}

// The hash was made by RabbitMQ 3.10 for the password guest.
func TestHashOfRabbitMQ(t *testing.T) {
	t.Parallel()
	h, err := ParsePasswordHash("PB/TC4oBskyKK4eSPfWBYob+bFt7tDiBYOtBeFwbmCM6LWgF")
	if err != nil {
		t.Fatal(err)
	}
	if !h.Matches("guest") || h.Matches("Guest") {
		t.Error("the hash must match guest and nothing else")
	}
}

func TestHashPasswordSalts(t *testing.T) {
	t.Parallel()
	a, b := HashPassword("x"), HashPassword("x")
	if a == b {
		t.Errorf("two hashes of one password are both %s", a)
	}
	if !a.Matches("x") || !b.Matches("x") || a.Matches("y") {
		t.Error("a hash must match its password and no other")
	}
}

func TestParsePasswordHash(t *testing.T) {
	t.Parallel()
	good := HashPassword("pässword")
	if got, err := ParsePasswordHash(string(good)); err != nil || got != good {
		t.Errorf("ParsePasswordHash(%s) = %s, %v", good, got, err)
	}
	if _, err := ParsePasswordHash(""); err != nil {
		t.Errorf("the empty hash: %v, want it accepted", err)
	}
	for text, want := range map[string]string{
		"%%%": "illegal base64",
		base64.StdEncoding.EncodeToString(make([]byte, 20)): "has 20 bytes, must have 36",
	} {
		if _, err := ParsePasswordHash(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePasswordHash(%q) = %v, want one with %q", text, err, want)
		}
	}
}

func tcp(t *testing.T, s string) net.Addr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
