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

// Logs holds the log of a proxy. Its level and format may change while it is in use.
type Logs struct {
	out        io.Writer // receives each line in one call, from any goroutine
	handler    atomic.Pointer[slog.Handler]
	handlerFor atomic.Pointer[func(io.Writer) slog.Handler] // creates a handler like *handler
	queue      *logQueue                                    // nil if out has no queue
}

// NewLogs returns a log that does not wait for a slow reader. The caller must close it.
func NewLogs(out io.Writer, cfg conf.Config) (*Logs, error) {
	l := &Logs{}
	l.queue = newLogQueue(out, l.droppedLinesNotice)
	l.out = l.queue
	if err := l.apply(cfg); err != nil {
		l.queue.Close()
		return nil, err
	}
	return l, nil
}

// droppedLinesNotice returns the line that reports how many lines were dropped.
func (l *Logs) droppedLinesNotice(lines int64) []byte {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped: the reader of the log is too slow", 0)
	r.AddAttrs(slog.Int64("lines", lines))
	var line bytes.Buffer
	_ = (*l.handlerFor.Load())(&line).Handle(context.Background(), r)
	return line.Bytes()
}

// Close writes the remaining lines, unless the reader takes too long.
func (l *Logs) Close() { l.queue.Close() }

// droppedLines returns how many lines could not be written.
func (l *Logs) droppedLines() int64 {
	if l == nil || l.queue == nil {
		return 0
	}
	return l.queue.DroppedLines()
}

// apply sets the level and the format for all further lines of all loggers.
func (l *Logs) apply(cfg conf.Config) error {
	handler, err := newHandler(l.out, cfg)
	if err != nil {
		return err
	}
	handlerFor := func(w io.Writer) slog.Handler {
		handler, _ := newHandler(w, cfg) // no error: cfg was valid above
		return handler
	}
	l.handlerFor.Store(&handlerFor)
	l.handler.Store(&handler)
	return nil
}

// Logger returns a logger that follows changes of the level and the format.
func (l *Logs) Logger() *slog.Logger {
	return slog.New(currentHandler{logs: l, addContext: func(h slog.Handler) slog.Handler { return h }})
}

// currentHandler delegates to the current handler of the log, and adds the attributes and groups of
// a logger.
type currentHandler struct {
	logs       *Logs
	addContext func(slog.Handler) slog.Handler
}

// Enabled implements slog.Handler.
func (f currentHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return (*f.logs.handler.Load()).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (f currentHandler) Handle(ctx context.Context, r slog.Record) error {
	return f.addContext(*f.logs.handler.Load()).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (f currentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return currentHandler{f.logs, func(h slog.Handler) slog.Handler { return f.addContext(h).WithAttrs(attrs) }}
}

// WithGroup implements slog.Handler.
func (f currentHandler) WithGroup(name string) slog.Handler {
	return currentHandler{f.logs, func(h slog.Handler) slog.Handler { return f.addContext(h).WithGroup(name) }}
}

// formatDuration formats durations with their unit. JSON would otherwise contain plain
// nanoseconds.
func formatDuration(_ []string, a slog.Attr) slog.Attr {
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
		opts.ReplaceAttr = formatDuration
		return slog.NewJSONHandler(w, opts), nil
	case "text":
		return slog.NewTextHandler(w, opts), nil
	}
	return nil, errors.New("unknown log format " + cfg.LogFormat)
}

// auditLogger returns a logger that writes to the same log, but ignores the level.
func auditLogger(log *slog.Logger) *slog.Logger { return slog.New(anyLevelHandler{log.Handler()}) }

// anyLevelHandler is a handler that accepts lines of every level.
type anyLevelHandler struct{ slog.Handler }

// Enabled implements slog.Handler.
func (anyLevelHandler) Enabled(context.Context, slog.Level) bool { return true }
