// Package httpapi is about what the broker says over HTTP: its health now, and the place where
// the management API joins. It turns requests into questions to what it was given and answers
// into JSON. It does not know AMQP frames, the store, or who wires it.
//
// Errors are JSON objects {"error": CODE, "reason": TEXT}; the codes are stable.
package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
)

// Status is the state of the broker as a whole.
type Status string

// The states, in the order of a life; Failed may follow any of them.
const (
	Starting Status = "starting"
	Ready    Status = "ready"
	Stopping Status = "stopping"
	Failed   Status = "failed"
)

// Health is what /healthz answers.
type Health struct {
	Status Status `json:"status"`
	// Reason says why the status is not ready.
	Reason string `json:"reason,omitempty"`
	// Totals is nil as long as there is nothing to count: before ready.
	*Totals
}

// Totals are messages that are not in a queue.
type Totals struct {
	// Pending is how many delayed messages wait until they are due.
	Pending uint64 `json:"pending"`
	// Parked is how many were due and no queue was bound for them: they are kept, and an
	// operator should know.
	Parked int `json:"parked"`
}

// Config is what the API asks.
type Config struct {
	// Health is called once per request, concurrently, and must not block.
	Health func() Health
	// Logger may be nil.
	Logger *slog.Logger
}

// API answers requests.
type API struct {
	health func() Health
	log    *slog.Logger
	mux    *http.ServeMux
}

// New returns the API as a handler.
func New(c Config) *API {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{health: c.Health, log: c.Logger.With("part", "http"), mux: http.NewServeMux()}
	a.mux.HandleFunc("GET /healthz", a.handleHealth)
	a.mux.HandleFunc("/", a.handleUnknown)
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mux.ServeHTTP(w, r)
}

// handleHealth answers 200 when the broker is ready and 503 with the reason when it is not.
func (a *API) handleHealth(w http.ResponseWriter, _ *http.Request) {
	h := a.health()
	code := http.StatusOK
	if h.Status != Ready {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	a.writeJSON(w, code, h)
}

func (a *API) handleUnknown(w http.ResponseWriter, r *http.Request) {
	a.writeError(w, http.StatusNotFound, "not_found", "there is nothing at "+r.URL.Path)
}

func (a *API) writeError(w http.ResponseWriter, code int, stable, reason string) {
	a.writeJSON(w, code, struct {
		Error  string `json:"error"`
		Reason string `json:"reason"`
	}{stable, reason})
}

func (a *API) writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.log.Debug("answer not written", "err", err)
	}
}
