// Package httpapi is about what the broker says over HTTP: its health, and the management API with
// RabbitMQ's paths and JSON. It turns requests into calls of the broker, on behalf of the user who
// asks and with that user's rights, and answers into JSON. It does not know AMQP frames, the store,
// nor what a definitions file or a policy may hold.
//
// Errors are JSON objects {"error": CODE, "reason": TEXT}; the codes are RabbitMQ's. Names in a path
// are percent-encoded, so / is %2F. [rmq management]
package httpapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/duepost/duepost/internal/definitions"
	"github.com/duepost/duepost/internal/server"
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

// Parts are what the management API asks and changes.
type Parts struct {
	definitions.Site
	Server *server.Server

	Node      string // the name by which tools know this broker
	Began     time.Time
	Listeners []Listener
}

// Listener is a port that is served.
type Listener struct {
	Protocol string // by RabbitMQ's name: amqp, amqp/ssl, http
	IP       string
	Port     int
}

// Config is what the API asks.
type Config struct {
	// Health is called once per request, concurrently, and must not block.
	Health func() Health
	// Parts is called like Health. It returns nil before the broker is ready; nil itself is an API
	// without management.
	Parts func() *Parts
	// Logger may be nil.
	Logger *slog.Logger
}

// API answers requests.
type API struct {
	health func() Health
	parts  func() *Parts
	log    *slog.Logger
	mux    *http.ServeMux

	messageRates, churn rates
}

// New returns the API as a handler.
func New(c Config) *API {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Parts == nil {
		c.Parts = func() *Parts { return nil }
	}
	a := &API{health: c.Health, parts: c.Parts, log: c.Logger.With("part", "http"), mux: http.NewServeMux()}
	a.mux.HandleFunc("GET /healthz", a.handleHealth)
	for _, r := range routes() {
		a.mux.HandleFunc(r.pattern, a.handler(r))
	}
	return a
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = withEncodedPath(r)
	h, pattern := a.mux.Handler(r)
	if pattern == "" { // the mux's own answers are not JSON
		a.refuse(w, h, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// withEncodedPath keeps names in the path encoded for the mux, which takes a segment that decodes
// to / for the end of the path. call.name decodes them. A / at the end means nothing.
func withEncodedPath(r *http.Request) *http.Request {
	encoded := *r
	at := *r.URL
	at.Path, at.RawPath = strings.TrimSuffix(r.URL.EscapedPath(), "/"), ""
	encoded.URL = &at
	return &encoded
}

// refuse answers a request that no route takes, or not with its method.
func (a *API) refuse(w http.ResponseWriter, h http.Handler, r *http.Request) {
	said := &statusOnly{header: make(http.Header)}
	h.ServeHTTP(said, r)
	if said.code != http.StatusMethodNotAllowed {
		a.writeError(w, notFound())
		return
	}
	w.Header().Set("Allow", said.header.Get("Allow"))
	a.writeError(w, &apiError{said.code, "method_not_allowed", "there is no " + r.Method + " at " + r.URL.Path})
}

// statusOnly keeps the status and the header of an answer.
type statusOnly struct {
	header http.Header
	code   int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (s *statusOnly) WriteHeader(code int)        { s.code = code }

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

// handler makes the http.HandlerFunc of a route.
func (a *API) handler(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := a.answer(to, r)
		if err != nil {
			a.writeError(w, err)
			return
		}
		switch answer := answer.(type) {
		case nil:
			w.WriteHeader(http.StatusNoContent)
		case made:
			if answer.at != "" {
				w.Header().Set("Location", answer.at)
			}
			w.WriteHeader(http.StatusCreated)
		case status:
			a.writeJSON(w, answer.code, answer.body)
		default:
			a.writeJSON(w, http.StatusOK, answer)
		}
	}
}

// answer does what a request asks for.
func (a *API) answer(to route, r *http.Request) (any, error) {
	p := a.parts()
	if p == nil {
		h := a.health()
		return nil, &apiError{http.StatusServiceUnavailable, "unavailable", string(h.Status) + ": " + h.Reason}
	}
	c := &call{Parts: p, r: r, health: a.health, messageRates: &a.messageRates, churn: &a.churn}
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	if err := to.may(c); err != nil {
		return nil, err
	}
	answer, err := to.do(c)
	if err != nil {
		return nil, err
	}
	if rows, ok := answer.(rows); ok {
		return rows.shaped(r.URL.Query())
	}
	return answer, nil
}

// writeError is where an error becomes an answer.
func (a *API) writeError(w http.ResponseWriter, err error) {
	var known *apiError
	if !errors.As(translate(err), &known) {
		a.log.Error("request failed", "err", err)
		known = &apiError{http.StatusInternalServerError, "internal_error", "internal error"}
	}
	if known.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="Duepost Management"`)
	}
	a.writeJSON(w, known.code, known)
}

func (a *API) writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.log.Debug("answer not written", "err", err)
	}
}
