package daemon

import (
	"context"
	"errors"
	"log/slog"

	"github.com/duepost/duepost/internal/config"
)

// Run is a whole life: start, announce, serve until ctx ends or a listener breaks, stop in
// order. It returns nil after an orderly stop.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger, announce func(*Daemon)) error {
	d, err := Start(cfg, log)
	if err != nil {
		return err
	}
	announce(d)
	var broken error
	select {
	case <-ctx.Done():
	case broken = <-d.Broken():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.StopTimeout)
	defer cancel()
	return errors.Join(broken, d.Shutdown(limited))
}
