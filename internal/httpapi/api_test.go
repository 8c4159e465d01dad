package httpapi

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthz(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		health Health
		code   int
		body   string
	}{
		{Health{Status: Ready}, 200, `{"status":"ready"}`},
		{Health{Status: Ready, Totals: &Totals{Pending: 3, Parked: 0}}, 200, `{"status":"ready","pending":3,"parked":0}`},
		{Health{Status: Starting, Reason: "replaying the log"}, 503, `{"status":"starting","reason":"replaying the log"}`},
		{Health{Status: Stopping, Reason: "asked to stop"}, 503, `{"status":"stopping","reason":"asked to stop"}`},
		{Health{Status: Failed, Reason: "store stopped: sync log: EIO"}, 503, `{"status":"failed","reason":"store stopped: sync log: EIO"}`},
	} {
		t.Run(string(tt.health.Status), func(t *testing.T) {
			t.Parallel()
			a := New(Config{Health: func() Health { return tt.health }})
			code, body := answer(a, http.MethodGet, "/healthz")
			if code != tt.code || body != tt.body {
				t.Errorf("GET /healthz = %d %s, want %d %s", code, body, tt.code, tt.body)
			}
			if code, _ := answer(a, http.MethodHead, "/healthz"); code != tt.code {
				t.Errorf("HEAD /healthz = %d, want %d", code, tt.code)
			}
		})
	}
}

func TestUnknownPlace(t *testing.T) {
	t.Parallel()
	a := New(Config{Health: func() Health { return Health{Status: Ready} }})
	code, body := answer(a, http.MethodGet, "/api/nothing")
	if want := `{"error":"Object Not Found","reason":"Not Found"}`; code != 404 || body != want {
		t.Errorf("GET /api/nothing = %d %s, want 404 %s", code, body, want)
	}
}

func TestServerServesAndStops(t *testing.T) {
	t.Parallel()
	s := NewServer(New(Config{Health: func() Health { return Health{Status: Ready} }}))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil || !strings.Contains(string(body), "ready") {
		t.Errorf("body = %s, %v, want one with ready", body, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v after Shutdown, want nil", err)
	}
}

func answer(a *API, method, path string) (code int, body string) {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}
