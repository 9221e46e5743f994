// Package locks implements the proxy's own commands on locks. lock.go has LOCK, UNLOCK, EXTEND and
// FENCE, several.go has MLOCK, MUNLOCK and MEXTEND, grammar.go has their grammar, and kept.go their
// option KEEPALIVE. atupstream.go has the replies while the locks are at the upstream. holders.go,
// locklist.go and wait.go have LOCKINFO, LOCKLIST, FORCEUNLOCK and WAIT.
package locks

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
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

// Commands returns LOCK, UNLOCK, EXTEND, MLOCK, MUNLOCK, MEXTEND and FENCE.
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
	one := []*command.Command{
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
	return append(one, l.severalCommands(ttl, kept, block, fenced, at)...)
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
	l.take(c, grammar{name: "lock", takesLock: true, maxTTL: l.MaxTTL()})
}

// take takes the keys of a command, all or none.
func (l *LockCommands) take(c command.Call, g grammar) {
	arrivalTime := c.FirstArrival
	if arrivalTime.IsZero() {
		arrivalTime = time.Now()
	}
	parsed, err := g.parse(c.Args)
	if err != nil {
		c.SyntaxError(err.Error())
		return
	}
	generated := parsed.token == randomTokenArg
	if generated {
		parsed.token = l.newToken()
	}
	keys, value := l.keysOnMasters(c.Client.DB, parsed.keys), contents.EncodeText(parsed.token)
	kept, err := l.reserve(c, parsed, keys, value)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	if parsed.wait != 0 {
		waitCtx, stop := c.Client.WaitContext(c.Ctx, parsed.keys...)
		defer stop()
		c.Ctx = waitCtx
	}
	got, err := l.Locks.Lock(c.Ctx, quorum.LockRequest{
		Keys: keys, Token: value, TTL: parsed.ttl, Wait: c.RemainingWait(parsed.wait), Holder: c.Client.Identity(),
		Fence: parsed.fence, Slots: parsed.slots,
	})
	if parsed.slots != 0 {
		keys = []quorum.Key{keys[0].OfHolder(value)}
	}
	if err == nil || errors.Is(err, quorum.ErrHeld) {
		c.Client.Transaction.NoteFound(c.Client.DB, parsed.keys)
	}
	if err != nil {
		kept.cancel()
	}
	switch {
	case errors.Is(err, quorum.ErrHeld):
		c.Out.WriteNull()
		return
	case errors.Is(err, quorum.ErrTooShort):
		c.Out.WriteError(syntax.ExpireTooShort(g.name))
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
	parsed.answer(got, arrivalTime, shownToken, c.Out)
	parsed.keepWhenDelivered(kept, slices.Repeat([]quorum.GrantedLock{got}, len(keys)), c.Out)
	// Copy the values, so that the closure does not retain the call.
	client, db, names := c.Client, c.Client.DB, parsed.keys
	l.noteEach(command.AuditGranted, client, db, names)
	c.Out.OnUndelivered(func() {
		l.Locks.Withdraw(keys, got)
		l.noteEach(command.AuditWithdrawn, client, db, names)
	})
}

// keysOnMasters returns the keys of locks on the masters.
func (l *LockCommands) keysOnMasters(db int, names []string) []quorum.Key {
	keys := make([]quorum.Key, len(names))
	for i, name := range names {
		keys[i] = l.KeyOnMasters(db, name)
	}
	return keys
}

// noteEach records an event of the lock of each key.
func (l *LockCommands) noteEach(event command.AuditAction, client *command.Client, db int, names []string) {
	for _, name := range names {
		l.Audit.Note(event, client, db, name)
	}
}

// answer replies with the validity in milliseconds, or with a map if the client requested more. The
// map contains the token unless token is empty.
func (a lockArgs) answer(got quorum.GrantedLock, arrived time.Time, token string, out *command.Reply) {
	if !a.at && token == "" {
		out.WriteValidity(got.Validity)
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
	out.WriteMap(fields)
	out.WriteBulk("validity")
	out.WriteValidity(got.Validity)
	if a.at {
		out.WriteBulk("waited")
		out.WriteInt(max(0, got.LeaseStart.Sub(arrived)).Milliseconds())
	}
	if token != "" {
		out.WriteBulk("token")
		out.WriteBulk(token)
	}
	if a.fence {
		out.WriteBulk("fence")
		out.WriteInt(got.Fence)
	}
}

// unlock implements UNLOCK key token.
func (l *LockCommands) unlock(c command.Call) { l.release(c, grammar{name: "unlock"}) }

// release releases the keys of a command, and replies with the number of released keys.
func (l *LockCommands) release(c command.Call, g grammar) {
	parsed, options, err := g.keysAndToken(c.Args)
	if err == nil && len(options) > 0 {
		err = fmt.Errorf("%s: unexpected '%s'", syntax.ErrSyntax, syntax.Excerpt(options[0]))
	}
	if err != nil {
		c.SyntaxError(err.Error())
		return
	}
	keys, value := l.keysOnMasters(c.Client.DB, parsed.keys), contents.EncodeText(parsed.token)
	for _, key := range keys {
		l.Keeper.Stop(key, value) // whatever the reply, the client no longer wants the lock
		l.Keeper.Stop(key.OfHolder(value), value)
	}
	errs := onEach(len(keys), func(i int) error { return l.Locks.Unlock(c.Ctx, keys[i], value) })
	released := 0
	for i, name := range parsed.keys {
		if errs[i] == nil {
			c.Client.Transaction.NoteFound(c.Client.DB, []string{name})
			l.Audit.Note(command.AuditReleased, c.Client, c.Client.DB, name)
			released++
		}
	}
	if err := firstFailure(errs); err != nil {
		c.Out.Fail(err)
		return
	}
	c.Out.WriteInt(int64(released))
}

// extend implements EXTEND key token PX ms|EX s [KEEPALIVE [MAXHOLD ms]] [AT].
func (l *LockCommands) extend(c command.Call) {
	l.extendKeys(c, grammar{name: "extend", maxTTL: l.MaxTTL()})
}

// extendKeys extends the locks of the keys of a command. It replies with nil if any of them is not
// held.
func (l *LockCommands) extendKeys(c command.Call, g grammar) {
	arrived := time.Now()
	parsed, err := g.parse(c.Args)
	if err != nil {
		c.SyntaxError(err.Error())
		return
	}
	keys, value := l.keysOnMasters(c.Client.DB, parsed.keys), contents.EncodeText(parsed.token)
	kept, err := l.reserve(c, parsed, keys, value)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	leases := make([]quorum.GrantedLock, len(keys))
	errs := onEach(len(keys), func(i int) (err error) {
		leases[i], err = l.Locks.Extend(c.Ctx, keys[i], value, parsed.ttl)
		return err
	})
	isHeld := true
	for i, err := range errs {
		if errors.Is(err, quorum.ErrNotHeld) {
			isHeld = false
			l.Keeper.RemoveLost(keys[i], value, keepalive.NotHeld)
			l.Keeper.RemoveLost(keys[i].OfHolder(value), value, keepalive.NotHeld)
		}
	}
	err = firstFailure(errs)
	if err != nil || !isHeld {
		kept.cancel()
	}
	switch {
	case errors.Is(err, quorum.ErrTooShort):
		c.Out.WriteError(syntax.ExpireTooShort(g.name))
	case err != nil:
		c.Out.Fail(err)
	case !isHeld:
		c.Out.WriteNull()
	default:
		parsed.answer(shortestLease(leases), arrived, "", c.Out)
		parsed.keepWhenDelivered(kept, leases, c.Out)
	}
}

// fence implements FENCE key.
func (l *LockCommands) fence(c command.Call) {
	key := string(c.Args[1])
	if key == "" {
		c.Out.WriteError("ERR empty key in 'fence' command")
		return
	}
	switch fence, err := l.Locks.Fence(c.Ctx, l.KeyOnMasters(c.Client.DB, key)); {
	case err != nil:
		c.Out.Fail(err)
	case fence == 0:
		c.Out.WriteNull()
	default:
		c.Out.WriteInt(fence)
	}
}

// newToken returns 128 random bits in hexadecimal.
func (l *LockCommands) newToken() string {
	var bits [16]byte
	l.Random(bits[:])
	return hex.EncodeToString(bits[:])
}
