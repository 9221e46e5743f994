package command

import (
	"log/slog"
	"sync/atomic"
)

// AuditAction is what became of a lock.
type AuditAction string

// The actions.
const (
	AuditGranted   AuditAction = "granted"
	AuditReleased  AuditAction = "released"
	AuditReplaced  AuditAction = "replaced"  // it has another value, and so another holder
	AuditWithdrawn AuditAction = "withdrawn" // it was granted to a client that had gone by then
	AuditForced    AuditAction = "forced"    // an operator took it from its holder
)

// Audit writes a line for each lock that is granted or released here: when, what, by whom, and
// never a token. A nil one writes none.
type Audit struct {
	log *slog.Logger
	off atomic.Bool
}

// NewAudit is nil for a nil logger.
func NewAudit(log *slog.Logger) *Audit {
	if log == nil {
		return nil
	}
	return &Audit{log: log}
}

// Switch has it write lines or not, from now on. It does nothing of a nil one.
func (l *Audit) Switch(on bool) {
	if l != nil {
		l.off.Store(!on)
	}
}

// Note writes the line of one key, as its client names it, in a database.
func (l *Audit) Note(what AuditAction, by *Client, db int, key string) {
	if l != nil && !l.off.Load() {
		l.log.Info("audit", "action", string(what), "db", db, "key", ShownKey(key), by.LogAttr())
	}
}

// maxShown is how much of a key a line shows.
const maxShown = 512

// ShownKey is a key as a log shows it.
func ShownKey(key string) string { return key[:min(maxShown, len(key))] }

// LogAttr is who a client is, as a log tells it.
func (c *Client) LogAttr() slog.Attr {
	who := c.Identity()
	var attrs []any
	if who.Addr != nil {
		attrs = append(attrs, slog.String("addr", who.Addr.String()))
	}
	if who.Name != "" {
		attrs = append(attrs, slog.String("name", who.Name))
	}
	if who.User != "" {
		attrs = append(attrs, slog.String("user", who.User))
	}
	return slog.Group("client", attrs...)
}
