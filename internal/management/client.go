// Package management is about asking a broker's management API: RabbitMQ's, or ours, which has the same
// paths and JSON.
//
// It knows HTTP and how refusals look. It does not know what is asked.
package management

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// clientTimeout bounds a request of a Client: a large definitions file takes seconds.
const clientTimeout = time.Minute

// Client asks a management API.
type Client struct {
	URL            string // of the server, without /api
	User, Password string
}

// Refusal is an answer with another code than 2xx.
type Refusal struct {
	Code   int    // HTTP's
	Stable string // the error for programs, "" if the answer is not an API's
	Reason string // the one for people
}

// Error returns the reason.
func (r *Refusal) Error() string {
	if r.Reason == "" {
		return fmt.Sprintf("HTTP status %d %s", r.Code, http.StatusText(r.Code))
	}
	return r.Reason
}

// Path makes a path below /api of segments that may hold anything.
func Path(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// Request is one question.
type Request struct {
	Method string
	Path   string // below /api; see the function Path
	Query  url.Values
	Body   []byte // JSON; nil is none
	Reason string // told to clients whose connections are closed
}

// Do asks and returns the body of the answer. The error is a *Refusal if there was an answer.
func (c *Client) Do(ctx context.Context, q Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	at := strings.TrimSuffix(c.URL, "/") + "/api/" + q.Path
	if len(q.Query) > 0 {
		at += "?" + q.Query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, at, bytes.NewReader(q.Body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.URL, err)
	}
	r.SetBasicAuth(c.User, c.Password)
	if q.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.Reason != "" {
		r.Header.Set("X-Reason", q.Reason)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.URL, bare(err))
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", c.URL, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, refusal(resp.StatusCode, body)
	}
	return body, nil
}

// bare is an error without the method and address that net/http puts before it.
func bare(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func refusal(code int, body []byte) error {
	var said struct {
		Error  string          `json:"error"`
		Reason json.RawMessage `json:"reason"` // in RabbitMQ a text, or terms as a list
	}
	r := &Refusal{Code: code}
	if json.Unmarshal(body, &said) == nil {
		r.Stable, r.Reason = said.Error, string(said.Reason)
		var text string
		if json.Unmarshal(said.Reason, &text) == nil {
			r.Reason = strings.TrimSpace(text)
		}
	}
	return r
}
