package commands

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/server"
	"redlock-proxy/quorum"
)

// fakeLocks returns fixed results, and records its calls.
type fakeLocks struct {
	validity time.Duration
	err      error
	// leaseStart is the time at which the lease began.
	leaseStart time.Time
	// fence is the fence of the lock.
	fence int64
	// onLock, unless it is nil, runs during each Lock.
	onLock func(ctx context.Context)

	mu    sync.Mutex
	calls []string
}

func (f *fakeLocks) Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error) {
	fenced := ""
	if req.Fence {
		fenced = ", with a fence"
	}
	var keys []string
	for _, key := range req.Keys {
		keys = append(keys, fmt.Sprintf("%d/%s", key.DB, key.Name))
	}
	f.record("lock %s by %s for %v, waiting %v%s", strings.Join(keys, " "), req.Token, req.TTL, req.Wait, fenced)
	if f.onLock != nil {
		f.onLock(ctx)
	}
	if ctx.Err() != nil {
		return quorum.GrantedLock{}, context.Cause(ctx)
	}
	return f.grant(req.Token), f.err
}

func (f *fakeLocks) Unlock(ctx context.Context, key quorum.Key, token string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.record("unlock %d/%s by %s", key.DB, key.Name, token)
	return f.err
}

func (f *fakeLocks) Extend(_ context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error) {
	f.record("extend %d/%s by %s for %v", key.DB, key.Name, token, ttl)
	return f.grant(token), f.err
}

func (f *fakeLocks) ExtendTogether(_ context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock {
	return make([]quorum.GrantedLock, len(requests))
}

func (f *fakeLocks) grant(token string) quorum.GrantedLock {
	return quorum.GrantedLock{Validity: f.validity, LeaseStart: f.leaseStart, Fence: f.fence, Version: token}
}

func (f *fakeLocks) Fence(_ context.Context, key quorum.Key) (int64, error) {
	f.record("fence of %d/%s", key.DB, key.Name)
	return f.fence, f.err
}

func (*fakeLocks) AwaitPop(context.Context, quorum.BlockedPop) error {
	return quorum.ErrPopTimeout
}

func (*fakeLocks) WaiterCount() int { return 0 }

func (f *fakeLocks) Withdraw(keys []quorum.Key, got quorum.GrantedLock) {
	for _, key := range keys {
		f.record("withdraw %d/%s of %s", key.DB, key.Name, got.Version)
	}
}

func (f *fakeLocks) record(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

// fixture holds a table, a client, and the fakes that both use.
type fixture struct {
	*testing.T
	table  *Table
	client *command.Client
	locks  *fakeLocks
	out    command.Reply
}

func newFixture(t *testing.T) *fixture {
	locks := &fakeLocks{validity: 9888 * time.Millisecond, fence: 1700000000000001}
	count := byte(0)
	table := NewTable(Options{
		Locks: locks, Settings: Settings{MaxTTL: 24 * time.Hour,
			MaxClients: 77}, Server: server.Options{Version: "1.2.3"},
		Random: func(b []byte) {
			for i := range b {
				b[i] = count
				count++
			}
		},
	})
	return &fixture{T: t, table: table, client: newClient(), locks: locks}
}

func newClient() *command.Client {
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6380}
	return &command.Client{ID: 7, Addr: addr, LocalAddr: addr, ConnectedAt: time.Now(), Proto: 2}
}

// ask runs a command as a session does, and returns its reply.
func (b *fixture) ask(words ...string) string {
	return b.askIn(b.Context(), words...)
}

func (b *fixture) askIn(ctx context.Context, words ...string) string {
	args, at := syntax.Bytes(words), len(b.out.Bytes)
	if cmd := b.table.Lookup(args[0]); cmd != nil {
		b.table.Run(cmd, command.Call{Ctx: ctx, Client: b.client, Args: args, Out: &b.out})
	} else {
		b.client.Refuse(UnknownCommand(args), &b.out)
	}
	// A command that waits sends the pending replies.
	return string(b.out.Bytes[min(at, len(b.out.Bytes)):])
}

// runRouted runs a command as a session of a proxy without an upstream does, and returns its reply.
func runRouted(ctx context.Context, table *Table, client *command.Client, words []string, out *command.Reply) string {
	args, at, tx := syntax.Bytes(words), len(out.Bytes), &client.Transaction
	d := table.Route(Situation{InMulti: tx.Open, Watching: tx.HasWatchedKeys()}, args)
	table.Run(d.Command, command.Call{Ctx: ctx, Client: client, Args: args, Out: out})
	return string(out.Bytes[at:])
}

// askLine is like ask, for words separated by blanks.
func (b *fixture) askLine(line string) string { return b.ask(strings.Split(line, " ")...) }

// expect fails unless the command gets exactly this reply.
func (b *fixture) expect(line, want string) {
	b.Helper()
	if got := b.askLine(line); got != want {
		b.Errorf("%s: %q, want %q", line, got, want)
	}
}

// expectCalls fails unless the locks got exactly these calls since the last expectCalls.
func (b *fixture) expectCalls(want ...string) {
	b.Helper()
	b.locks.mu.Lock()
	defer b.locks.mu.Unlock()
	if !slices.Equal(b.locks.calls, want) {
		b.Errorf("the locks were asked %q, want %q", b.locks.calls, want)
	}
	b.locks.calls = nil
}
