package quorum

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// hush is the slog.Handler of a generation. What masters do while a planned step is under way, and
// those of before after it, is no news: it is logged at debug level.
type hush struct {
	slog.Handler
	on *atomic.Bool
}

// Enabled is of slog.Handler.
func (h hush) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, h.level(level))
}

// Handle is of slog.Handler.
func (h hush) Handle(ctx context.Context, r slog.Record) error {
	r.Level = h.level(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is of slog.Handler.
func (h hush) WithAttrs(attrs []slog.Attr) slog.Handler {
	return hush{h.Handler.WithAttrs(attrs), h.on}
}

// WithGroup is of slog.Handler.
func (h hush) WithGroup(name string) slog.Handler { return hush{h.Handler.WithGroup(name), h.on} }

// level is that of a line; an error stays one.
func (h hush) level(of slog.Level) slog.Level {
	if h.on.Load() && of < slog.LevelError {
		return slog.LevelDebug
	}
	return of
}
