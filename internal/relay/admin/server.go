package admin

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/duepost/duepost/internal/management"
	"github.com/duepost/duepost/internal/relay"
)

// Config is what is shown.
type Config struct {
	Fleet *relay.Fleet
	// Management is asked for what is in the queues; nil for nobody, and then the status has only
	// what this process knows.
	Management *management.Client
	Logger     *slog.Logger // nil discards
}

type server struct {
	cfg Config
}

// New returns the handler.
func New(cfg Config) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &server{cfg}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(cfg.Fleet))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) {
		s.write(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /health/ready", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/relay/status", s.status)
	return mux
}

// ready says 503 with what is not as it should be.
func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	all := members(s.cfg.Fleet)
	reasons := []string{}
	for _, m := range all {
		switch {
		case !m.AtWork:
			reasons = append(reasons, fmt.Sprintf("vhost %q: not at work", m.VHost))
		case m.Alarm != "":
			reasons = append(reasons, fmt.Sprintf("vhost %q: %s", m.VHost, m.Alarm))
		}
	}
	if len(all) == 0 {
		reasons = append(reasons, "no relay has begun")
	}
	if len(reasons) > 0 {
		s.write(w, http.StatusServiceUnavailable, map[string]any{"status": "failed", "reasons": reasons})
		return
	}
	s.write(w, http.StatusOK, map[string]string{"status": "ok"})
}

// status tells what relays do and what waits for them.
func (s *server) status(w http.ResponseWriter, r *http.Request) {
	answer := struct {
		Relays []Member `json:"relays"`
		VHosts []Status `json:"vhosts"`
	}{members(s.cfg.Fleet), []Status{}}
	if s.cfg.Management != nil {
		for _, m := range answer.Relays {
			one, err := Read(r.Context(), s.cfg.Management, m.VHost)
			if err != nil {
				s.write(w, http.StatusBadGateway, map[string]string{"error": "bad_gateway", "reason": err.Error()})
				return
			}
			answer.VHosts = append(answer.VHosts, one)
		}
	}
	s.write(w, http.StatusOK, answer)
}

func (s *server) write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		s.cfg.Logger.Info("answer not sent", "err", err)
	}
}
