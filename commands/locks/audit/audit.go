// Package audit writes a line for each lock that is granted or released here: when, what, by whom,
// and never a token.
package audit

import (
	"log/slog"
	"sync/atomic"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
)

// Action is what became of a lock.
type Action string

// The actions.
const (
	Granted   Action = "granted"
	Released  Action = "released"
	Replaced  Action = "replaced"  // it has another value, and so another holder
	Withdrawn Action = "withdrawn" // it was granted to a client that had gone by then
	Forced    Action = "forced"    // an operator took it from its holder
)

// Log is where the lines go. A nil one takes none.
type Log struct {
	log *slog.Logger
	off atomic.Bool
}

// New is nil for a nil logger.
func New(log *slog.Logger) *Log {
	if log == nil {
		return nil
	}
	return &Log{log: log}
}

// Switch has it take lines or not, from now on. It does nothing of a nil one.
func (l *Log) Switch(on bool) {
	if l != nil {
		l.off.Store(!on)
	}
}

// takes reports whether it takes lines.
func (l *Log) takes() bool { return l != nil && !l.off.Load() }

// Note writes the line of one key, as its client names it, in a database.
func (l *Log) Note(what Action, by *command.Client, db int, key string) {
	if !l.takes() {
		return
	}
	l.log.Info("audit", "action", string(what), "db", db, "key", Shown(key), By(by))
}

// maxShown is how much of a key a line shows.
const maxShown = 512

// Shown is a key as a log shows it.
func Shown(key string) string { return key[:min(maxShown, len(key))] }

// Edits writes the lines of what a program made of lock keys.
func (l *Log) Edits(by *command.Client, db int, edits []keyspace.Edit) {
	if !l.takes() {
		return
	}
	for _, e := range edits {
		switch {
		case !e.Was.Present && e.Now.Present:
			l.Note(Granted, by, db, e.Key)
		case e.Was.Present && !e.Now.Present:
			l.Note(Released, by, db, e.Key)
		case e.Was.Present && e.Was.Value != e.Now.Value:
			l.Note(Replaced, by, db, e.Key)
		}
	}
}

// By is who a client is, as a log tells it.
func By(c *command.Client) slog.Attr {
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
