package auth

import (
	"errors"
	"fmt"

	"github.com/duepost/duepost/internal/pattern"
)

// Tags that mean something. Users may have others. [rmq management]
const (
	Administrator = "administrator" // everything
	Monitoring    = "monitoring"    // see everything, change what management may
	Policymaker   = "policymaker"   // management, and policies
	Management    = "management"    // the API, in the virtual hosts it has permissions in
	Impersonator  = "impersonator"  // publish with the user-id of others
)

// User is somebody who may connect.
type User struct {
	Name     string
	Password PasswordHash
	Tags     []string
	Limits   Limits `json:",omitempty"`
}

// Permission is what a user may do in a virtual host: patterns of names of queues and exchanges.
type Permission struct {
	User, VHost            string
	Configure, Write, Read string
}

// TopicPermission is what a user may do with a topic exchange: patterns of routing keys. They may
// hold {username} and {vhost}.
type TopicPermission struct {
	User, VHost, Exchange string
	Write, Read           string
}

// Records are users and what they may do.
type Records struct {
	Users            []User
	Permissions      []Permission
	TopicPermissions []TopicPermission
}

// PatternError is a permission that is no regular expression.
type PatternError struct {
	Part    string // configure, write or read
	Pattern string
	Err     error
}

// Error says which.
func (e *PatternError) Error() string {
	return fmt.Sprintf("%s: invalid regular expression '%s': %v", e.Part, e.Pattern, e.Err)
}

// Unwrap returns the fault alone.
func (e *PatternError) Unwrap() error { return e.Err }

// maxName is the longest name in bytes: that of any name in AMQP.
const maxName = 255

// Validate says what is wrong with a user.
func (u *User) Validate() error {
	if u.Name == "" || len(u.Name) > maxName {
		return fmt.Errorf("check user: name has %d bytes, must have 1 to %d", len(u.Name), maxName)
	}
	if unknown := u.Limits.Unknown(); len(unknown) > 0 {
		return fmt.Errorf("check user: there is no limit '%s' of a user", unknown[0])
	}
	_, err := ParsePasswordHash(string(u.Password.Algorithm), u.Password.Text)
	return err
}

// HasTag reports whether the user has the tag.
func (u *User) HasTag(tag string) bool {
	for _, t := range u.Tags {
		if t == tag {
			return true
		}
	}
	return false
}

// Validate says what is wrong with the patterns: each fault is a *PatternError.
func (p *Permission) Validate() error {
	return errors.Join(checkPattern("configure", p.Configure), checkPattern("write", p.Write),
		checkPattern("read", p.Read))
}

// Validate says what is wrong with the patterns: each fault is a *PatternError.
func (p *TopicPermission) Validate() error {
	return errors.Join(checkPattern("write", withVariables(p.Write, "", "")),
		checkPattern("read", withVariables(p.Read, "", "")))
}

func checkPattern(part, text string) error {
	if _, err := compile(text); err != nil {
		return &PatternError{Part: part, Pattern: text, Err: errors.Unwrap(err)}
	}
	return nil
}

// compile makes a pattern of a permission: the empty one permits the empty name.
func compile(text string) (*pattern.Pattern, error) {
	if text == "" {
		text = "^$"
	}
	return pattern.Compile(text)
}
