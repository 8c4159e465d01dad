package auth

import (
	"encoding/base64"
	"strings"
	"testing"
)

// The first hash was made by RabbitMQ 3.10 for the password guest, the others by the recipe in
// its documentation.
func TestHashesOfRabbitMQ(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ algorithm, text string }{
		{"", "PB/TC4oBskyKK4eSPfWBYob+bFt7tDiBYOtBeFwbmCM6LWgF"},
		{string(SHA256), "PB/TC4oBskyKK4eSPfWBYob+bFt7tDiBYOtBeFwbmCM6LWgF"},
		{string(SHA512), "kI3GCrf65LdSkFyP8BVa8fB/67dDZ7ljrRF4WEjLDwWuHFxFQjgE88vc4EqLc8+dW4j5onKsGl4Ty32Icokl1iJrRxk="},
		{string(MD5), "kI3GCsLphS59YDqYemSoxQGij64="},
	} {
		h, err := ParsePasswordHash(tt.algorithm, tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if !h.Matches("guest") || h.Matches("Guest") || h.Matches("") {
			t.Errorf("%s %s must match guest and nothing else", tt.algorithm, tt.text)
		}
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
	if got, err := ParsePasswordHash(string(SHA256), good.Text); err != nil || got != good {
		t.Errorf("ParsePasswordHash(%s) = %s, %v", good, got, err)
	}
	if _, err := ParsePasswordHash("", ""); err != nil {
		t.Errorf("the empty hash: %v, want it accepted", err)
	}
	for _, tt := range []struct{ algorithm, text, want string }{
		{"", "%%%", "illegal base64"},
		{"", base64.StdEncoding.EncodeToString(make([]byte, 20)), "has 20 bytes, must have 36"},
		{string(MD5), good.Text, "has 36 bytes, must have 20"},
		{"rot13", good.Text, `unknown algorithm "rot13"`},
	} {
		if _, err := ParsePasswordHash(tt.algorithm, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParsePasswordHash(%q, %q) = %v, want one with %q", tt.algorithm, tt.text, err, tt.want)
		}
	}
}
