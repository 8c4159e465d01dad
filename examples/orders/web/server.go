package web

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"

	"github.com/duepost/duepost/examples/orders/shop"
)

//go:embed page
var page embed.FS

// maxRequest is the most bytes that a request may have.
const maxRequest = 10_000

type server struct {
	shop *shop.Shop
	log  *slog.Logger
}

// New returns the handler of a shop. Streams of events end with ctx. log is nil for none.
func New(ctx context.Context, s *shop.Shop, log *slog.Logger) (http.Handler, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	v := &server{shop: s, log: log}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/overview", v.overview)
	mux.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) { v.events(ctx, w, r) })
	mux.HandleFunc("POST /api/orders", v.place)
	mux.HandleFunc("GET /api/orders/{id}", v.order)
	mux.HandleFunc("POST /api/orders/{id}/pay", v.pay)
	// A page of somebody else must not place orders in the name of who looks at it.
	return http.NewCrossOriginProtection().Handler(mux), nil
}

func (v *server) overview(w http.ResponseWriter, r *http.Request) {
	o, err := v.shop.Overview(r.Context(), mostOrders)
	v.answer(w, http.StatusOK, o, err)
}

func (v *server) place(w http.ResponseWriter, r *http.Request) {
	var order struct {
		SKU      string `json:"sku"`
		Quantity int64  `json:"quantity"`
	}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	body.DisallowUnknownFields()
	if err := body.Decode(&order); err != nil {
		v.write(w, http.StatusBadRequest, fault{"read order: " + err.Error()})
		return
	}
	o, err := v.shop.Place(r.Context(), order.SKU, order.Quantity)
	v.answer(w, http.StatusCreated, o, err)
}

func (v *server) order(w http.ResponseWriter, r *http.Request) {
	o, err := v.shop.Order(r.Context(), r.PathValue("id"))
	v.answer(w, http.StatusOK, o, err)
}

func (v *server) pay(w http.ResponseWriter, r *http.Request) {
	if err := v.shop.Pay(r.Context(), r.PathValue("id")); err != nil {
		v.answer(w, 0, nil, err)
		return
	}
	v.order(w, r)
}

type fault struct {
	Error string `json:"error"`
}

// answer writes a value, or what went wrong. Only what a customer can do something about is told.
func (v *server) answer(w http.ResponseWriter, status int, value any, err error) {
	switch {
	case err == nil:
		v.write(w, status, value)
	case errors.Is(err, shop.ErrQuantity):
		v.write(w, http.StatusBadRequest, fault{err.Error()})
	case errors.Is(err, shop.ErrUnknown):
		v.write(w, http.StatusNotFound, fault{err.Error()})
	case errors.Is(err, shop.ErrSoldOut), errors.Is(err, shop.ErrTooLate):
		v.write(w, http.StatusConflict, fault{err.Error()})
	default:
		v.log.Warn("request not answered", "err", err)
		v.write(w, http.StatusInternalServerError, fault{"the shop has a problem, try again"})
	}
}

func (v *server) write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		v.log.Info("answer not sent", "err", err)
	}
}
