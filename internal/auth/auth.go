// Package auth is about who may connect: users, their salted password hashes, and the rule that
// some users are let in from this machine only. It does not know how credentials travel, nor
// what a user may do once in.
//
// Hashes have RabbitMQ's format, so that users exported from there can be taken over: base64 of
// a 4-byte salt followed by SHA-256 of salt and password.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
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

// saltSize is fixed by the format.
const saltSize = 4

// Users is the set of users. Safe for concurrent use.
type Users struct {
	loopbackOnly []string

	mu    sync.RWMutex // guards users
	users map[string]PasswordHash
}

// NewUsers returns an empty set. The users named in loopbackOnly, whether they exist or not, are
// let in from loopback addresses only.
func NewUsers(loopbackOnly ...string) *Users {
	return &Users{loopbackOnly: slices.Clone(loopbackOnly), users: map[string]PasswordHash{}}
}

// Put adds a user or replaces its password hash. An empty hash makes a user that no password
// lets in.
func (u *Users) Put(name string, hash PasswordHash) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users[name] = hash
}

// Delete removes a user; connections it has stay open.
func (u *Users) Delete(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.users, name)
}

// CheckPassword returns nil if the user exists, the password is its own and it may connect from
// there.
func (u *Users) CheckPassword(name, password string, from net.Addr) error {
	if err := u.CheckName(name, from); err != nil {
		return err
	}
	u.mu.RLock()
	hash := u.users[name]
	u.mu.RUnlock()
	if !hash.Matches(password) {
		return ErrWrongPassword
	}
	return nil
}

// CheckName returns nil if the user exists and may connect from there. It is all there is to
// check for a client whose certificate has proved its name.
func (u *Users) CheckName(name string, from net.Addr) error {
	u.mu.RLock()
	_, known := u.users[name]
	u.mu.RUnlock()
	if !known {
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

// PasswordHash is a salted hash in its text form; see the package comment.
type PasswordHash string

// HashPassword hashes with a fresh salt.
func HashPassword(password string) PasswordHash {
	var salt [saltSize]byte
	_, _ = rand.Read(salt[:]) // never fails: it ends the program instead
	return encode(salt[:], password)
}

// ParsePasswordHash accepts what an export holds, the empty hash included.
func ParsePasswordHash(text string) (PasswordHash, error) {
	if text == "" {
		return "", nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("parse password hash: %w", err)
	}
	if len(raw) != saltSize+sha256.Size {
		return "", fmt.Errorf("parse password hash: has %d bytes, must have %d (SHA-256 with salt)",
			len(raw), saltSize+sha256.Size)
	}
	return PasswordHash(text), nil
}

// Matches tells whether the hash was made of this password, in a time that does not tell how
// nearly. The empty hash matches nothing.
func (h PasswordHash) Matches(password string) bool {
	raw, err := base64.StdEncoding.DecodeString(string(h))
	if err != nil || len(raw) != saltSize+sha256.Size {
		return false
	}
	want := encode(raw[:saltSize], password)
	return subtle.ConstantTimeCompare([]byte(want), []byte(h)) == 1
}

func encode(salt []byte, password string) PasswordHash {
	sum := sha256.Sum256(append(slices.Clone(salt), password...))
	return PasswordHash(base64.StdEncoding.EncodeToString(append(slices.Clone(salt), sum[:]...)))
}
