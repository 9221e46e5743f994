package command

import (
	"log/slog"
	"sync/atomic"
)

// AuditAction names an event of a lock in the audit log.
type AuditAction string

// The actions.
const (
	AuditGranted   AuditAction = "granted"
	AuditReleased  AuditAction = "released"
	AuditReplaced  AuditAction = "replaced"  // a client replaced the value of the lock, and so its holder
	AuditWithdrawn AuditAction = "withdrawn" // the proxy undid the grant because the client had disconnected
	AuditForced    AuditAction = "forced"    // an operator removed the lock
)

// Audit logs each lock that this proxy grants or releases: the time, the action, the database, the
// key and the client, but never a token. A nil Audit logs nothing.
type Audit struct {
	log *slog.Logger
	off atomic.Bool
}

// NewAudit returns an Audit that writes to a logger, or nil if the logger is nil.
func NewAudit(log *slog.Logger) *Audit {
	if log == nil {
		return nil
	}
	return &Audit{log: log}
}

// SetEnabled turns the log on or off. On a nil Audit it does nothing.
func (l *Audit) SetEnabled(on bool) {
	if l != nil {
		l.off.Store(!on)
	}
}

// Note logs an action on a key in a database. key is the name that the client uses.
func (l *Audit) Note(action AuditAction, client *Client, db int, key string) {
	if l != nil && !l.off.Load() {
		l.log.Info("audit", "action", string(action), "db", db, "key", ShownKey(key), client.LogAttr())
	}
}

// maxLoggedKey limits the length of a key in a log message, in bytes.
const maxLoggedKey = 512

// ShownKey returns the part of a key that log messages show.
func ShownKey(key string) string { return key[:min(maxLoggedKey, len(key))] }

// LogAttr returns the address, name and user of a client as a log attribute.
func (c *Client) LogAttr() slog.Attr {
	identity := c.Identity()
	var attrs []any
	if identity.Addr != nil {
		attrs = append(attrs, slog.String("addr", identity.Addr.String()))
	}
	if identity.Name != "" {
		attrs = append(attrs, slog.String("name", identity.Name))
	}
	if identity.User != "" {
		attrs = append(attrs, slog.String("user", identity.User))
	}
	return slog.Group("client", attrs...)
}
