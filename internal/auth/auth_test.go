package auth

import (
	"errors"
	"net"
	"testing"
)

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	u := NewUsers("guest")
	mustPut(t, u, Records{Users: []User{
		{Name: "guest", Password: HashPassword("guest")},
		{Name: "orders", Password: HashPassword("s3cret")},
		{Name: "nobody", Password: HashPassword("")},
	}})
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

func tcp(t *testing.T, s string) net.Addr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustPut(t *testing.T, u *Users, r Records) {
	t.Helper()
	if err := u.Put(r); err != nil {
		t.Fatal(err)
	}
}
