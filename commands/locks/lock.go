// Package locks implements the proxy's own commands on locks. lock.go has LOCK, UNLOCK, EXTEND and
// FENCE, grammar.go their grammar, kept.go the part of KEEPALIVE, and atupstream.go their replies
// while the locks are at the upstream. holders.go, locklist.go and wait.go have LOCKINFO, LOCKLIST,
// FORCEUNLOCK and WAIT.
package locks

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/quorum"
)

// Locker takes, extends and releases locks. *quorum.Locker implements it, and documents the errors.
type Locker interface {
	Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error)
	Unlock(ctx context.Context, key quorum.Key, token string) error
	Withdraw(keys []quorum.Key, got quorum.GrantedLock)
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error)
	Fence(ctx context.Context, key quorum.Key) (int64, error)
}

// LockCommands implements the lock commands. It is safe for concurrent use. Only Audit is optional.
type LockCommands struct {
	Locks Locker
	// MaxTTL returns the longest TTL that a client may ask for now.
	MaxTTL func() time.Duration
	// KeyOnMasters returns the key of a lock on the masters.
	KeyOnMasters func(db int, key string) quorum.Key
	// Random fills a slice with unpredictable bytes.
	Random func([]byte)
	// Keeper renews the locks that clients have kept.
	Keeper *keepalive.Keeper
	Audit  *command.Audit
}

// Commands returns LOCK, UNLOCK, EXTEND and FENCE.
func (l *LockCommands) Commands() []*command.Command {
	ttl := command.OneOf("ttl", command.IntegerAfter("PX", "milliseconds"), command.IntegerAfter("EX", "seconds"))
	block := command.Optional(command.IntegerAfter("BLOCK", "milliseconds"))
	kept := command.Optional(command.Block("keepalive", command.Word("KEEPALIVE", "keepalive"),
		command.Optional(command.IntegerAfter("MAXHOLD", "milliseconds"))))
	fenced, at := command.Optional(command.Word("FENCE", "fence")), command.Optional(command.Word("AT", "at"))
	slots := command.Optional(command.OneOf("holders", command.Word("SHARED", "shared"), command.IntegerAfter("SLOTS", "slots")))
	fence := lockDocs("Returns a number not lower than the fence of any lock of the key so far, " +
		"or nil if no lock has had one for a week.")
	fence.Reads, fence.Categories = true, "read slow"
	return []*command.Command{
		{Name: "lock", Arity: -5, RequiresLogin: true, Run: l.lock, RunsWithoutClient: hasNoBlock, Docs: lockDocs(
			"Takes a lock on a majority of the masters. Returns its validity in milliseconds, "+
				"or nil if another client holds it; with FENCE also a number higher than that of any earlier lock.",
			command.Text("token"), ttl, slots, kept, block, fenced, at)},
		{Name: "unlock", Arity: 3, RequiresLogin: true, Run: l.unlock, RunsWithoutClient: alwaysWithoutClient, Docs: lockDocs(
			"Releases a lock. Returns 1, or 0 if it is not held with that token.",
			command.Text("token"))},
		{Name: "extend", Arity: -5, RequiresLogin: true, Run: l.extend, RunsWithoutClient: alwaysWithoutClient, Docs: lockDocs(
			"Sets a new TTL for a held lock. Returns its validity in milliseconds, "+
				"or nil if it is not held with that token.",
			command.Text("token"), ttl, kept, at)},
		{Name: "fence", Arity: 2, RequiresLogin: true, Run: l.fence, Docs: fence},
	}
}

// hasNoBlock reports whether a LOCK has no BLOCK. It may return false for a LOCK without BLOCK, if
// the key or token is the word block.
func hasNoBlock(words [][]byte) bool {
	return !slices.ContainsFunc(words, func(word []byte) bool { return bytes.EqualFold(word, []byte("block")) })
}

// alwaysWithoutClient implements RunsWithoutClient for a command that never uses its client.
func alwaysWithoutClient([][]byte) bool { return true }

// lockDocs returns the documentation of a lock command. Since is a version of the proxy.
func lockDocs(summary string, args ...command.Argument) command.Docs {
	return command.Docs{
		Group: command.OwnGroup, Summary: summary, Since: "0.1.0",
		Complexity: "O(N) with N masters, in one round trip",
		Args:       append([]command.Argument{command.Key()}, args...), FirstArgIsKey: true, Categories: "write slow",
	}
}

// lock implements LOCK key token|* PX ms|EX s [SHARED|SLOTS n] [KEEPALIVE [MAXHOLD ms]] [BLOCK ms]
// [FENCE] [AT].
func (l *LockCommands) lock(c command.Call) {
	arrived := c.FirstArrival
	if arrived.IsZero() {
		arrived = time.Now()
	}
	g := grammar{name: "lock", takesLock: true, maxTTL: l.MaxTTL()}
	parsed, err := g.parse(c.Args)
	if err != nil {
		c.SyntaxError(err.Error())
		return
	}
	generated := parsed.token == generateToken
	if generated {
		parsed.token = l.newToken()
	}
	key, value := l.KeyOnMasters(c.Client.DB, parsed.key), contents.EncodeText(parsed.token)
	kept, err := l.reserve(c, parsed, key, value)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	if parsed.wait != 0 {
		waitCtx, stop := c.Client.WaitContext(c.Ctx, parsed.key)
		defer stop()
		c.Ctx = waitCtx
	}
	got, err := l.Locks.Lock(c.Ctx, quorum.LockRequest{
		Key: key, Token: value, TTL: parsed.ttl, Wait: c.RemainingWait(parsed.wait), Holder: c.Client.Identity(),
		Fence: parsed.fence, Slots: parsed.slots,
	})
	if parsed.slots != 0 {
		key = key.OfHolder(value)
	}
	if err == nil || errors.Is(err, quorum.ErrHeld) {
		c.Client.Transaction.NoteFound(c.Client.DB, []string{parsed.key})
	}
	if err != nil {
		kept.Cancel()
	}
	switch {
	case errors.Is(err, quorum.ErrHeld):
		c.Out.Null()
		return
	case errors.Is(err, quorum.ErrTooShort):
		c.Out.Error(syntax.ExpireTooShort(g.name))
		return
	case err != nil:
		c.Out.Fail(err)
		return
	}
	shownToken := ""
	if generated || parsed.fence {
		shownToken = parsed.token
	}
	// The reply comes first, because it starts the countdown of the validity.
	parsed.answer(got, arrived, shownToken, c.Out)
	parsed.keepWhenDelivered(kept, got, c.Out)
	// Copy the values, so that the closure does not retain the call.
	client, name := c.Client, parsed.key
	l.Audit.Note(command.AuditGranted, client, key.DB, name)
	c.Out.IfUndelivered(func() {
		l.Locks.Withdraw([]quorum.Key{key}, got)
		l.Audit.Note(command.AuditWithdrawn, client, key.DB, name)
	})
}

// answer replies with the validity in milliseconds, or with a map if the client requested more. The
// map contains the token unless token is empty.
func (a lockArgs) answer(got quorum.GrantedLock, arrived time.Time, token string, out *command.Reply) {
	if !a.at && token == "" {
		out.Validity(got.Validity)
		return
	}
	fields := 1
	if a.at {
		fields++
	}
	if token != "" {
		fields++
	}
	if a.fence {
		fields++
	}
	out.Map(fields)
	out.Bulk("validity")
	out.Validity(got.Validity)
	if a.at {
		out.Bulk("waited")
		out.Int(max(0, got.Since.Sub(arrived)).Milliseconds())
	}
	if token != "" {
		out.Bulk("token")
		out.Bulk(token)
	}
	if a.fence {
		out.Bulk("fence")
		out.Int(got.Fence)
	}
}

// unlock implements UNLOCK key token.
func (l *LockCommands) unlock(c command.Call) {
	if err := checkNotEmpty("unlock", c.Args); err != nil {
		c.Out.Error(err.Error())
		return
	}
	key := string(c.Args[1])
	keyOnMasters, value := l.KeyOnMasters(c.Client.DB, key), contents.EncodeText(string(c.Args[2]))
	l.Keeper.Stop(keyOnMasters, value) // whatever the reply, the client no longer wants the lock
	l.Keeper.Stop(keyOnMasters.OfHolder(value), value)
	err := l.Locks.Unlock(c.Ctx, keyOnMasters, value)
	switch {
	case err == nil:
		c.Client.Transaction.NoteFound(c.Client.DB, []string{key})
		l.Audit.Note(command.AuditReleased, c.Client, c.Client.DB, key)
		c.Out.Int(1)
	case errors.Is(err, quorum.ErrNotHeld):
		c.Out.Int(0)
	default:
		c.Out.Fail(err)
	}
}

// extend implements EXTEND key token PX ms|EX s [KEEPALIVE [MAXHOLD ms]] [AT].
func (l *LockCommands) extend(c command.Call) {
	arrived := time.Now()
	g := grammar{name: "extend", maxTTL: l.MaxTTL()}
	parsed, err := g.parse(c.Args)
	if err != nil {
		c.SyntaxError(err.Error())
		return
	}
	key, value := l.KeyOnMasters(c.Client.DB, parsed.key), contents.EncodeText(parsed.token)
	kept, err := l.reserve(c, parsed, key, value)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	got, err := l.Locks.Extend(c.Ctx, key, value, parsed.ttl)
	if err != nil {
		kept.Cancel()
	}
	switch {
	case err == nil:
		parsed.answer(got, arrived, "", c.Out)
		parsed.keepWhenDelivered(kept, got, c.Out)
	case errors.Is(err, quorum.ErrNotHeld):
		l.Keeper.Lost(key, value, keepalive.NotHeld)
		l.Keeper.Lost(key.OfHolder(value), value, keepalive.NotHeld)
		c.Out.Null()
	case errors.Is(err, quorum.ErrTooShort):
		c.Out.Error(syntax.ExpireTooShort(g.name))
	default:
		c.Out.Fail(err)
	}
}

// fence implements FENCE key.
func (l *LockCommands) fence(c command.Call) {
	key := string(c.Args[1])
	if key == "" {
		c.Out.Error("ERR empty key in 'fence' command")
		return
	}
	switch fence, err := l.Locks.Fence(c.Ctx, l.KeyOnMasters(c.Client.DB, key)); {
	case err != nil:
		c.Out.Fail(err)
	case fence == 0:
		c.Out.Null()
	default:
		c.Out.Int(fence)
	}
}

// newToken returns 128 random bits in hexadecimal.
func (l *LockCommands) newToken() string {
	var bits [16]byte
	l.Random(bits[:])
	return hex.EncodeToString(bits[:])
}
