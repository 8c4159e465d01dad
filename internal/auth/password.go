package auth

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
)

// saltSize is fixed by the format.
const saltSize = 4

// Algorithm is how a password was hashed, by RabbitMQ's name for it.
type Algorithm string

// The algorithms. SHA256 is for new passwords, MD5 is what a definitions file from before 3.6 has.
const (
	SHA256 Algorithm = "rabbit_password_hashing_sha256"
	SHA512 Algorithm = "rabbit_password_hashing_sha512"
	MD5    Algorithm = "rabbit_password_hashing_md5"
)

// sum hashes; nil is an unknown algorithm.
func (a Algorithm) sum(b []byte) []byte {
	switch a {
	case SHA256:
		h := sha256.Sum256(b)
		return h[:]
	case SHA512:
		h := sha512.Sum512(b)
		return h[:]
	case MD5:
		h := md5.Sum(b)
		return h[:]
	}
	return nil
}

// PasswordHash is a salted hash in its text form; see the package comment. The zero value is no
// password, which nothing matches.
type PasswordHash struct {
	Algorithm Algorithm
	Text      string
}

// HashPassword hashes with a fresh salt. The empty password makes the zero hash: it lets nobody
// in. [rmq access-control]
func HashPassword(password string) PasswordHash {
	if password == "" {
		return PasswordHash{Algorithm: SHA256}
	}
	var salt [saltSize]byte
	_, _ = rand.Read(salt[:]) // never fails: it ends the program instead
	return encode(SHA256, salt[:], password)
}

// ParsePasswordHash accepts what an export holds, the empty hash included. No algorithm means
// SHA256.
func ParsePasswordHash(algorithm, text string) (PasswordHash, error) {
	h := PasswordHash{Algorithm: Algorithm(algorithm), Text: text}
	if algorithm == "" {
		h.Algorithm = SHA256
	}
	size := saltSize + len(h.Algorithm.sum(nil))
	if size == saltSize {
		return PasswordHash{}, fmt.Errorf("parse password hash: unknown algorithm %q, must be %s, %s or %s",
			algorithm, SHA256, SHA512, MD5)
	}
	if text == "" {
		return h, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return PasswordHash{}, fmt.Errorf("parse password hash: %w", err)
	}
	if len(raw) != size {
		return PasswordHash{}, fmt.Errorf("parse password hash: has %d bytes, must have %d (salt and %s)",
			len(raw), size, h.Algorithm)
	}
	return h, nil
}

// Matches tells whether the hash was made of this password, in a time that does not tell how
// nearly.
func (h PasswordHash) Matches(password string) bool {
	raw, err := base64.StdEncoding.DecodeString(h.Text)
	if err != nil || len(raw) <= saltSize || password == "" {
		return false
	}
	want := encode(h.Algorithm, raw[:saltSize], password)
	return subtle.ConstantTimeCompare([]byte(want.Text), []byte(h.Text)) == 1
}

func encode(a Algorithm, salt []byte, password string) PasswordHash {
	sum := a.sum(append(slices.Clone(salt), password...))
	text := base64.StdEncoding.EncodeToString(append(slices.Clone(salt), sum...))
	return PasswordHash{Algorithm: a, Text: text}
}
