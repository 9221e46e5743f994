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

	"redlock-proxy/quorum"
)

// fakeLocks answers as it is told, and writes down what it was asked.
type fakeLocks struct {
	validity time.Duration
	err      error
	// during is called while a Lock runs.
	during func(ctx context.Context)

	mu    sync.Mutex
	asked []string
}

func (f *fakeLocks) Lock(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
	f.note("lock %d/%s by %s for %v, waiting %v", req.Key.DB, req.Key.Name, req.Token, req.TTL, req.Wait)
	if f.during != nil {
		f.during(ctx)
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return f.validity, f.err
}

func (f *fakeLocks) Unlock(ctx context.Context, key quorum.Key, token string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.note("unlock %d/%s by %s", key.DB, key.Name, token)
	return f.err
}

func (f *fakeLocks) Extend(_ context.Context, key quorum.Key, token string, ttl time.Duration) (time.Duration, error) {
	f.note("extend %d/%s by %s for %v", key.DB, key.Name, token, ttl)
	return f.validity, f.err
}

func (f *fakeLocks) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

// bench is a table, a client and what both work with.
type bench struct {
	*testing.T
	table  *Table
	client *Client
	locks  *fakeLocks
	out    Reply
}

func newBench(t *testing.T) *bench {
	locks := &fakeLocks{validity: 9888 * time.Millisecond}
	count := byte(0)
	table := NewTable(Options{
		Locks: locks, MaxTTL: 24 * time.Hour, Version: "1.2.3", MaxClients: 77,
		Random: func(b []byte) {
			for i := range b {
				b[i] = count
				count++
			}
		},
	})
	return &bench{T: t, table: table, client: newClient(), locks: locks}
}

func newClient() *Client {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6380}
	return &Client{ID: 7, Addr: here, LocalAddr: here, Since: time.Now(), Proto: 2}
}

// ask runs a command as a session does, and returns its reply.
func (b *bench) ask(words ...string) string {
	return b.askIn(b.Context(), words...)
}

func (b *bench) askIn(ctx context.Context, words ...string) string {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	if cmd := b.table.Lookup(args[0]); cmd != nil {
		b.table.Run(ctx, cmd, b.client, args, &b.out)
	} else {
		b.table.Unknown(b.client, args, &b.out)
	}
	return string(b.out.Bytes[b.out.mark:])
}

// say is ask of words that are separated by blanks.
func (b *bench) say(line string) string { return b.ask(strings.Split(line, " ")...) }

// expect fails unless the command gets exactly this reply.
func (b *bench) expect(line, want string) {
	b.Helper()
	if got := b.say(line); got != want {
		b.Errorf("%s: %q, want %q", line, got, want)
	}
}

// expectAsked fails unless this is what the locks were asked since the last time.
func (b *bench) expectAsked(want ...string) {
	b.Helper()
	b.locks.mu.Lock()
	defer b.locks.mu.Unlock()
	if !slices.Equal(b.locks.asked, want) {
		b.Errorf("the locks were asked %q, want %q", b.locks.asked, want)
	}
	b.locks.asked = nil
}
