package management

import "testing"

// RabbitMQ's reasons may be lists, and a proxy's answers are no JSON.
func TestRefusals(t *testing.T) {
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
