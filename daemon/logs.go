package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"redlock-proxy/conf"
)

// Logs is the log of a proxy, whose level and form may change while it is written.
type Logs struct {
	out     io.Writer // takes each line in one piece, from any goroutine
	current atomic.Pointer[slog.Handler]
	form    atomic.Pointer[func(io.Writer) slog.Handler] // of current
	queue   *logQueue                                    // nil: lines are written at once
}

// NewLogs makes one whose reader nothing waits for. It is to be closed.
func NewLogs(out io.Writer, cfg conf.Config) (*Logs, error) {
	l := &Logs{}
	l.queue = newLogQueue(out, l.lost)
	l.out = l.queue
	if err := l.apply(cfg); err != nil {
		l.queue.Close()
		return nil, err
	}
	return l, nil
}

// lost is the line that says how many lines could not be written.
func (l *Logs) lost(lines int64) []byte {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines of the log are missing here: its reader was too slow", 0)
	r.AddAttrs(slog.Int64("lines", lines))
	var line bytes.Buffer
	_ = (*l.form.Load())(&line).Handle(context.Background(), r)
	return line.Bytes()
}

// Close writes what is left, unless its reader takes too long.
func (l *Logs) Close() { l.queue.Close() }

// dropped is how many lines could not be written.
func (l *Logs) dropped() int64 {
	if l == nil || l.queue == nil {
		return 0
	}
	return l.queue.Dropped()
}

// apply has level and form of a configuration hold for all lines to come, of every logger.
func (l *Logs) apply(cfg conf.Config) error {
	handler, err := newHandler(l.out, cfg)
	if err != nil {
		return err
	}
	form := func(w io.Writer) slog.Handler {
		handler, _ := newHandler(w, cfg) // of a configuration that has one
		return handler
	}
	l.form.Store(&form)
	l.current.Store(&handler)
	return nil
}

// Logger writes as the log is at the time.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(following{logs: l, with: func(h slog.Handler) slog.Handler { return h }})
}

// following is a handler that does as the handler of now does, with what was added to it.
type following struct {
	logs *Logs
	with func(slog.Handler) slog.Handler
}

// Enabled is of slog.Handler.
func (f following) Enabled(ctx context.Context, level slog.Level) bool {
	return (*f.logs.current.Load()).Enabled(ctx, level)
}

// Handle is of slog.Handler.
func (f following) Handle(ctx context.Context, r slog.Record) error {
	return f.with(*f.logs.current.Load()).Handle(ctx, r)
}

// WithAttrs is of slog.Handler.
func (f following) WithAttrs(attrs []slog.Attr) slog.Handler {
	return following{f.logs, func(h slog.Handler) slog.Handler { return f.with(h).WithAttrs(attrs) }}
}

// WithGroup is of slog.Handler.
func (f following) WithGroup(name string) slog.Handler {
	return following{f.logs, func(h slog.Handler) slog.Handler { return f.with(h).WithGroup(name) }}
}

// withUnit has durations tell their unit. In JSON they would be bare nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func newHandler(w io.Writer, cfg conf.Config) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level}
	switch cfg.LogFormat {
	case "json":
		opts.ReplaceAttr = withUnit
		return slog.NewJSONHandler(w, opts), nil
	case "text":
		return slog.NewTextHandler(w, opts), nil
	}
	return nil, errors.New("unknown log format " + cfg.LogFormat)
}

// auditLogger writes where log does, whatever the level.
func auditLogger(log *slog.Logger) *slog.Logger { return slog.New(anyLevel{log.Handler()}) }

// anyLevel is a handler that takes lines of every level.
type anyLevel struct{ slog.Handler }

// Enabled is of slog.Handler.
func (anyLevel) Enabled(context.Context, slog.Level) bool { return true }
