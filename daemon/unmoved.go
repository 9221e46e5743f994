package daemon

import (
	"context"
	"log/slog"

	"redlock-proxy/commands/moving"
	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
)

// CanMove reports whether the locks of a proxy can be moved from its upstream to the masters and back.
func CanMove(cfg conf.Config) bool { return cfg.Upstream != "" && HasPlaces(cfg) }

// LockKeysAtUpstream returns how many lock keys the upstream holds, and one of them. more is set where it has more keys than are looked at.
func LockKeysAtUpstream(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (n int, first string, more bool, err error) {
	up, err := newUpstream(cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, "", false, err
	}
	defer up.Close()
	conn, err := up.Single(ctx)
	if err != nil {
		return 0, "", false, err
	}
	defer conn.Close()
	return moving.CountAt(ctx, conn, cfg.LockKeys)
}

// applyToTables has settings hold for all commands.
func (d *daemon) applyToTables(cfg conf.Config) {
	d.table.Apply(tableSettings(cfg))
	if d.unmoved != nil {
		d.unmoved.Apply(tableSettings(cfg))
	}
}
