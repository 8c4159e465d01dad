package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/duepost/duepost/internal/management"
)

// userCmd administers users.
type userCmd struct {
	apiFlags

	Add            userAddCmd         `cmd:"" help:"Add a user."`
	Delete         userDeleteCmd      `cmd:"" help:"Delete a user and close its connections."`
	ChangePassword userPasswordCmd    `cmd:"" aliases:"password" help:"Give a user another password."`
	SetTags        userTagsCmd        `cmd:"" aliases:"tags" help:"Replace the tags of a user."`
	List           userListCmd        `cmd:"" help:"List the users."`
	SetLimits      userSetLimitsCmd   `cmd:"" help:"Limit the connections and channels of a user."`
	ClearLimits    userClearLimitsCmd `cmd:"" help:"Lift all limits of a user."`
}

// described is a user as the API has it.
type described struct {
	Hash      string   `json:"password_hash"`
	Algorithm string   `json:"hashing_algorithm"`
	Tags      []string `json:"tags"`
}

func (c *userCmd) user(ctx context.Context, name string) (u described, err error) {
	return u, missing(c.get(ctx, management.Path("users", name), &u), fmt.Sprintf("user %q", name))
}

type userAddCmd struct {
	Name     string   `arg:"" help:"Its name."`
	Password string   `arg:"" optional:"" help:"Its password; read from standard input when absent."`
	Tags     []string `name:"tags" placeholder:"TAG,..." help:"What it may do here: administrator, monitoring, policymaker, management."`
}

// Run adds the user, and refuses one that is there.
func (c *userAddCmd) Run(ctx context.Context, p process, in *userCmd) error {
	switch _, err := in.user(ctx, c.Name); {
	case err == nil:
		return &hintedError{fmt.Errorf("add user: there is a user %q", c.Name), "change-password gives it another password", exitFailed}
	case !isMissing(err):
		return fmt.Errorf("add user %q: %w", c.Name, err)
	}
	password, err := readPassword(c.Password, p.stdin)
	if err != nil {
		return err
	}
	err = in.put(ctx, management.Path("users", c.Name), map[string]any{"password": password, "tags": tagList(c.Tags)})
	if err != nil {
		return fmt.Errorf("add user %q: %w", c.Name, err)
	}
	in.say(p, "added user %q; it has no permissions yet", c.Name)
	return nil
}

// readPassword returns the argument, or the first line of the input.
func readPassword(argument string, stdin io.Reader) (string, error) {
	if argument != "" {
		return argument, nil
	}
	if f, ok := stdin.(*os.File); ok && isTerminal(f) {
		return "", &usageError{errors.New("a password is needed"), "give it as an argument or on standard input"}
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", &usageError{errors.New("the password is empty"), "give it as an argument or on standard input"}
	}
	return line, nil
}

// tagList is never null in JSON.
func tagList(tags []string) []string { return append([]string{}, tags...) }

type userDeleteCmd struct {
	Name string `arg:"" help:"Its name."`
}

// Run deletes the user.
func (c *userDeleteCmd) Run(ctx context.Context, p process, in *userCmd) error {
	if err := in.remove(ctx, management.Path("users", c.Name), fmt.Sprintf("user %q", c.Name)); err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	in.say(p, "deleted user %q", c.Name)
	return nil
}

type userPasswordCmd struct {
	Name     string `arg:"" help:"Its name."`
	Password string `arg:"" optional:"" help:"Its new password; read from standard input when absent."`
}

// Run changes the password and leaves the tags.
func (c *userPasswordCmd) Run(ctx context.Context, p process, in *userCmd) error {
	u, err := in.user(ctx, c.Name)
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	password, err := readPassword(c.Password, p.stdin)
	if err != nil {
		return err
	}
	err = in.put(ctx, management.Path("users", c.Name), map[string]any{"password": password, "tags": tagList(u.Tags)})
	if err != nil {
		return fmt.Errorf("change password of user %q: %w", c.Name, err)
	}
	in.say(p, "changed the password of user %q", c.Name)
	return nil
}

type userTagsCmd struct {
	Name string   `arg:"" help:"Its name."`
	Tags []string `arg:"" optional:"" help:"All its tags from now on; none takes them away."`
}

// Run replaces the tags and leaves the password.
func (c *userTagsCmd) Run(ctx context.Context, p process, in *userCmd) error {
	u, err := in.user(ctx, c.Name)
	if err != nil {
		return fmt.Errorf("set tags: %w", err)
	}
	err = in.put(ctx, management.Path("users", c.Name), map[string]any{
		"password_hash": u.Hash, "hashing_algorithm": u.Algorithm, "tags": tagList(c.Tags)})
	if err != nil {
		return fmt.Errorf("set tags of user %q: %w", c.Name, err)
	}
	in.say(p, "user %q has the tags %q", c.Name, c.Tags)
	return nil
}

type userListCmd struct{}

// Run lists the users.
func (c *userListCmd) Run(ctx context.Context, p process, in *userCmd) error {
	return in.list(ctx, p, "users", "name", "tags", "limits")
}
