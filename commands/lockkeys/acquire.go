package lockkeys

import (
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

// acquire runs SETNX, and SET with NX, like LOCK. This way costs the least, and keeps the order of
// the waiters. acquire returns false if the caller must run the command.
func (p *Runner) acquire(c command.Call, words []string) bool {
	if !onlyAcquires(words) {
		return false
	}
	key := words[1]
	s := program.GuessAbsent([]string{key}).Snapshot(p.opts.Now())
	reply, err := s.Do(words)
	edits := s.Edits()
	switch {
	case err != nil || s.HasUsedKeys() && len(edits) == 0: // an expiry that has already passed
		return false
	case len(edits) == 0:
		program.WriteReply(c.Out, reply)
		return true
	}
	if refusal := p.refusalOf(edits); refusal != "" {
		c.Out.WriteError(refusal)
		return true
	}
	p.lockFor(c, edits[0], reply)
	return true
}

// lockFor takes a lock, and writes grantedReply. If the key is held, lockFor writes 0 for SETNX,
// and nil for SET.
func (p *Runner) lockFor(c command.Call, e keyspace.Edit, grantedReply keyspace.Reply) {
	keyOnMasters, ttl := p.Engine.KeyOnMasters(c.Client.DB, e.Key), e.After.RemainingTTL
	if ttl < 0 {
		ttl = quorum.NoExpiry
	}
	grant, err := p.opts.Locks.Lock(c.Ctx,
		quorum.LockRequest{Keys: []quorum.Key{keyOnMasters}, Token: e.After.Value, TTL: ttl, Holder: c.Client.Identity()})
	if errors.Is(err, quorum.ErrHeld) {
		c.Client.Transaction.NoteFound(c.Client.DB, []string{e.Key})
	}
	switch {
	case errors.Is(err, quorum.ErrTooShort):
		c.Out.WriteError(syntax.ExpireTooShort(e.ExpiryCommand))
		return
	case errors.Is(err, quorum.ErrHeld) && grantedReply.Kind == keyspace.Int:
		c.Out.WriteInt(0)
		return
	case errors.Is(err, quorum.ErrHeld):
		c.Out.WriteNull()
		return
	case err != nil:
		c.Out.Fail(err)
		return
	}
	if ttl < 0 {
		p.warnKeyNoTTL(e.Key)
	}
	c.Client.Transaction.NoteChange(c.Client.DB, e.Key)
	p.opts.Audit.Note(command.AuditGranted, c.Client, c.Client.DB, e.Key)
	program.WriteReply(c.Out, grantedReply)
	c.Out.OnUndelivered(func() {
		p.opts.Locks.Withdraw([]quorum.Key{keyOnMasters}, grant)
		p.opts.Audit.Note(command.AuditWithdrawn, c.Client, keyOnMasters.DB, e.Key)
	})
}

// onlyAcquires reports whether a command only takes a lock: SETNX, or SET with NX and at most a
// TTL. onlyAcquires does not check the syntax.
func onlyAcquires(words []string) bool {
	if len(words) < 3 {
		return false
	}
	switch syntax.Lower(words[0]) {
	case "setnx":
		return len(words) == 3
	case "set":
	default:
		return false
	}
	nx := false
	for options := words[3:]; len(options) > 0; {
		length := 1
		switch syntax.Lower(options[0]) {
		case "nx":
			nx = true
		case "px", "ex", "pxat", "exat":
			length = 2
		default:
			return false
		}
		options = options[min(length, len(options)):]
	}
	return nx
}
