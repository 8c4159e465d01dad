package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := httptest.NewServer(f)
	defer s.Close()
	c := Client{URL: s.URL + "/", User: "guest", Password: "guest"}
	do := func(q Request) string {
		t.Helper()
		body, err := c.Do(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(body))
	}
	do(Request{Method: http.MethodPut, Path: Path("queues", "/", "a/b c?d"), Body: []byte(`{"durable":true}`)})
	if got, want := do(Request{Method: http.MethodGet, Path: Path("queues", "/"),
		Query: url.Values{"columns": {"name,durable"}}}), `[{"durable":true,"name":"a/b c?d"}]`; got != want {
		t.Errorf("queues are %s, want %s", got, want)
	}
	closed := f.connect("guest", "/").NotifyClose(make(chan *amqp.Error, 1))
	do(Request{Method: http.MethodDelete, Path: Path("connections", "username", "guest"), Reason: "because"})
	wantClosed(t, closed, "because")

	_, err := c.Do(t.Context(), Request{Method: http.MethodDelete, Path: Path("queues", "nope", "q")})
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Code != 404 || refused.Stable != "not_found" || refused.Reason != "vhost_not_found" {
		t.Errorf("Do = %#v, want the refusal 404", err)
	}
	c.Password = "wrong"
	if _, err = c.Do(t.Context(), Request{Method: http.MethodGet, Path: "whoami"}); !errors.As(err, &refused) || refused.Code != 401 {
		t.Errorf("Do with a wrong password = %v, want the refusal 401", err)
	}
	s.Close()
	if _, err = c.Do(t.Context(), Request{Method: http.MethodGet, Path: "whoami"}); err == nil || errors.As(err, new(*Refusal)) {
		t.Errorf("Do without a server = %v, want an error", err)
	}
}

// RabbitMQ's reasons may be lists, and a proxy's answers are no JSON.
func TestRefusalsOfOthers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":"bad_request","reason":["not_base64","zz"]}`: `["not_base64","zz"]`,
		`{"error":"bad_request","reason":" why\n"}`:            "why",
		`<html>`: "HTTP status 502 Bad Gateway",
		``:       "HTTP status 502 Bad Gateway",
	} {
		if got := refusal(502, []byte(body)).Error(); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
