package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/duepost/duepost/internal/management"
)

// apiFlags are what every verb has that administers a broker over its management API.
type apiFlags struct {
	APIURL   string `name:"api-url" default:"http://127.0.0.1:15672" help:"The management API: of duepost serve, or RabbitMQ's."`
	User     string `name:"user" short:"u" default:"guest" help:"Who asks."`
	Password string `name:"password" default:"guest" help:"Who asks proves it by this; better set in the environment."`
	Format   string `name:"format" aliases:"formatter" enum:"table,json" default:"table" help:"How lists are printed: table or json."`
}

// vhostFlag is for verbs about what is in a virtual host.
type vhostFlag struct {
	VHost string `name:"vhost" short:"p" default:"/" help:"The virtual host."`
}

// ask sends a request and turns the usual faults into errors with a hint.
func (f *apiFlags) ask(ctx context.Context, q management.Request) ([]byte, error) {
	c := management.Client{URL: f.APIURL, User: f.User, Password: f.Password}
	answer, err := c.Do(ctx, q)
	var refused *management.Refusal
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &hintedError{err, "nothing listens there; `duepost serve` starts a broker, --api-url names another one", exitFailed}
	case !errors.As(err, &refused):
		return nil, err
	case refused.Stable == "not_authorized":
		return nil, &hintedError{fmt.Errorf("log in at %s as %s: %w", f.APIURL, f.User, err),
			"--user or --password is not right; a user named guest is let in from loopback only", exitFailed}
	case refused.Code == http.StatusUnauthorized:
		return nil, &hintedError{err, fmt.Sprintf("user %s lacks the tag or the permission", f.User), exitFailed}
	case refused.Stable == "":
		return nil, &hintedError{err, "is --api-url right? A management API answers in JSON; its port is 15672", exitFailed}
	}
	return nil, err
}

// get asks for what is at a path and decodes it.
func (f *apiFlags) get(ctx context.Context, path string, v any) error {
	answer, err := f.ask(ctx, management.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	return decodeAnswer(answer, v)
}

func decodeAnswer(answer []byte, v any) error {
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// put makes or replaces what is at a path.
func (f *apiFlags) put(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	_, err = f.ask(ctx, management.Request{Method: http.MethodPut, Path: path, Body: text})
	return err
}

// remove deletes what is at a path. what names it in the error if it is not there.
func (f *apiFlags) remove(ctx context.Context, path, what string) error {
	_, err := f.ask(ctx, management.Request{Method: http.MethodDelete, Path: path})
	return missing(err, what)
}

// missing names what an answer 404 is about.
func missing(err error, what string) error {
	var refused *management.Refusal
	if errors.As(err, &refused) && refused.Code == http.StatusNotFound && refused.Stable != "not_found" {
		return &missingError{what}
	}
	return err
}

// list prints columns of the objects at a path.
func (f *apiFlags) list(ctx context.Context, p process, path string, columns ...string) error {
	var rows []map[string]any
	if err := f.get(ctx, path, &rows); err != nil {
		return missing(err, listed(path))
	}
	return (&table{columns, rows}).write(p.stdout, f.Format)
}

// listed names what must be there for a list at a path: the last of its names, if there is one.
func listed(path string) string {
	kind, name, ok := strings.Cut(path, "/")
	if !ok {
		return kind
	}
	if kind == "vhosts" {
		name, _, _ = strings.Cut(name, "/")
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return fmt.Sprintf("vhost %q", name)
}

// say tells what was done, where people read it.
func (f *apiFlags) say(p process, format string, a ...any) {
	if f.Format == "table" {
		fmt.Fprintf(p.stdout, format+"\n", a...)
	}
}

// missingError is that something is not there.
type missingError struct{ what string }

func (e *missingError) Error() string { return "there is no " + e.what }

func isMissing(err error) bool { return errors.As(err, new(*missingError)) }
