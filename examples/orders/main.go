// Command orders is a small shop: it shows how package duepost and the packages beside it close orders
// that nobody pays. It prints where its page is.
//
//	go run .
//	go run . --broker amqp://guest:guest@127.0.0.1:5672/ --database postgres://shop@127.0.0.1/shop
//
// main.go knows the flags and how a run ends; package shop has the orders, package web the page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/examples/orders/shop"
	"github.com/duepost/duepost/examples/orders/web"
	"github.com/duepost/duepost/ladder"
)

type options struct {
	listen, broker, database string
	payWithin, firstLook     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8080", "where the page is")
	flag.StringVar(&o.broker, "broker", "", "amqp://user:password@host:port/vhost; a broker in this process if empty, which forgets all when it ends")
	flag.StringVar(&o.database, "database", "", "sqlite:FILE, postgres://… or mysql://user:password@tcp(host:port)/name; a file that is removed at the end if empty")
	flag.DurationVar(&o.payWithin, "pay-within", 30*time.Second, "how long a customer has to pay; stands for 30 minutes")
	flag.DurationVar(&o.firstLook, "first-look", time.Second, "when an order is looked at first; the pauses double from there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run opens the shop and serves it until ctx ends. It tells out where the page is.
func run(ctx context.Context, o options, out io.Writer) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if o.broker == "" {
		broker, err := duepostest.Open()
		if err != nil {
			return err
		}
		defer broker.Stop()
		o.broker = broker.URL
	}
	client, err := duepost.Connect(ctx, duepost.Options{URL: o.broker, Name: "orders", Logger: log})
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := openDatabase(o.database)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := shop.New(ctx, shop.Config{
		DB: db.DB, Dialect: db.dialect, Client: client, Logger: log,
		Steps:      ladder.Steps{First: o.firstLook, Deadline: o.payWithin},
		SweepEvery: max(o.payWithin/2, time.Second),
	})
	if err != nil {
		return err
	}
	for _, it := range []shop.Item{{SKU: "mug", Name: "Mug", Free: 20}, {SKU: "poster", Name: "Poster", Free: 8}, {SKU: "record", Name: "Record", Free: 3}} {
		if err := s.Stock(ctx, it); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "open http://%s/\n", listener.Addr())
	return serve(ctx, s, listener, log)
}

// serve runs the shop and its page until ctx ends.
func serve(ctx context.Context, s *shop.Shop, listener net.Listener, log *slog.Logger) error {
	group, ctx := errgroup.WithContext(ctx)
	handler, err := web.New(ctx, s, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	group.Go(func() error { return s.Run(ctx) })
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return server.Shutdown(late)
	})
	return group.Wait()
}
