package quorum

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// quietHandler is the slog.Handler of a set of masters. It logs messages below the error level at
// debug level during a planned step, and after another set has replaced this set: then these
// messages tell an operator nothing new.
type quietHandler struct {
	slog.Handler
	quiet *atomic.Bool
}

// Enabled implements slog.Handler.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, h.level(level))
}

// Handle implements slog.Handler.
func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = h.level(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs), h.quiet}
}

// WithGroup implements slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name), h.quiet}
}

// level returns the level at which a record is logged. Errors keep their level.
func (h quietHandler) level(originalLevel slog.Level) slog.Level {
	if h.quiet.Load() && originalLevel < slog.LevelError {
		return slog.LevelDebug
	}
	return originalLevel
}
