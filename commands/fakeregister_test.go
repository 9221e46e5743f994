package commands

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"
)

// fakeLocker implements Locks over a fake register.
type fakeLocker struct{ *fakeregister.Register }

func (f fakeLocker) Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error) {
	return f.Take(ctx, quorum.TakeRequest{Keys: req.Keys,
		TakeOptions: quorum.TakeOptions{Tokens: slices.Repeat([]string{req.Token}, len(req.Keys)), TTL: req.TTL}})
}

func (f fakeLocker) Unlock(ctx context.Context, key quorum.Key, token string) error {
	return f.Release(ctx, key, token)
}

func (fakeLocker) ExtendTogether(_ context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock {
	return make([]quorum.GrantedLock, len(requests))
}

func (fakeLocker) Fence(context.Context, quorum.Key) (int64, error) { return 0, nil }

// AwaitPop retries after each event. After the last event it returns a timeout, or an unknown
// outcome.
func (f fakeLocker) AwaitPop(ctx context.Context, a quorum.BlockedPop) error {
	f.Rounds = append(f.Rounds, fmt.Sprintf("wait %v for %s", a.Wait, a.Kind))
	inTurn := slices.Repeat([]bool{!f.HasPredecessors}, len(a.Keys))
	for result := a.Try(inTurn); result != quorum.PopEnded; result = a.Try(inTurn) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case len(f.OnWait) == 0 && result == quorum.PopUndetermined:
			return f.RoundErr
		case len(f.OnWait) == 0:
			return quorum.ErrPopTimeout
		}
		event := f.OnWait[0]
		f.OnWait, inTurn = f.OnWait[1:], slices.Repeat([]bool{true}, len(a.Keys))
		event()
	}
	return nil
}

func (fakeLocker) WaiterCount() int { return 0 }

// registerFixture holds a table over fake masters, and a client.
type registerFixture struct {
	*fixture
	masters     *fakeregister.Register
	sideEffects *fakeSideEffects
	pauses      int
	now         time.Time
}

// fakeSideEffects records the side effects of a client's commands.
type fakeSideEffects struct {
	client           *command.Client
	executedCommands []string
	runErr           error             // the error of running the commands
	requestErr       error             // the error of every request
	refusals         map[string]string // by the words of the command, separated by blanks
	checks           []string
	drops            int
}

func (f *fakeSideEffects) Refusals(_ context.Context, commands [][]string) ([]string, error) {
	texts := make([]string, len(commands))
	for i, words := range commands {
		f.checks = append(f.checks, strings.Join(words, " "))
		texts[i] = f.refusals[strings.Join(words, " ")]
	}
	return texts, f.requestErr
}

func (f *fakeSideEffects) Prepare(_ context.Context, commands [][]string) (rights.PreparedCommands, error) {
	for _, words := range commands {
		if text := f.refusals["prepare "+strings.Join(words, " ")]; text != "" {
			return nil, &rights.RefusedError{Text: text}
		}
	}
	return fakePrepared{f, commands}, f.requestErr
}

type fakePrepared struct {
	*fakeSideEffects
	commands [][]string
}

func (f fakePrepared) Do() error {
	for _, words := range f.commands {
		f.executedCommands = append(f.executedCommands, fmt.Sprintf("%d: %s", f.client.DB, strings.Join(words, " ")))
	}
	return f.runErr
}

func (f fakePrepared) Drop() { f.drops++ }

func newRegisterFixture(t *testing.T, change ...func(*Options)) *registerFixture {
	b := &registerFixture{fixture: &fixture{T: t, client: newClient()}, masters: fakeregister.NewRegister(),
		sideEffects: &fakeSideEffects{}, now: time.UnixMilli(1_700_000_000_000)}
	opts := Options{
		Locks: fakeLocker{b.masters}, Register: b.masters, Settings: Settings{MaxTTL: 24 * time.Hour},
		LockKeys: []string{"k*", "lock:*"},
		Random:   func(bits []byte) { clear(bits) }, Now: func() time.Time { return b.now },
	}
	b.sideEffects.client = b.client
	b.client.Upstream, b.client.Unrestricted = b.sideEffects, true
	for _, f := range change {
		f(&opts)
	}
	b.table = NewTable(opts)
	b.table.lockKeys.Engine.Pause = func(ctx context.Context, _ time.Duration) error {
		b.pauses++
		b.now = b.now.Add(20 * time.Millisecond)
		return context.Cause(ctx)
	}
	return b
}

// run runs a command on lock keys, and returns its reply as one line in the form of redis-cli.
func (b *registerFixture) run(words ...string) string {
	b.Helper()
	args := syntax.Bytes(words)
	cmd := b.table.router.lockKeyCommands[strings.ToLower(words[0])]
	if cmd == nil {
		b.Fatalf("%s is no command on lock keys", words[0])
	}
	at := len(b.out.Bytes)
	b.table.Run(cmd, command.Call{Ctx: b.Context(), Client: b.client, Args: args, Out: &b.out})
	return oneLine(b.T, string(b.out.Bytes[at:]))
}

// expectRun runs a command, given as words separated by blanks, and fails unless it gets this
// reply.
func (b *registerFixture) expectRun(line, want string) {
	b.Helper()
	if got := b.run(strings.Split(line, " ")...); got != want {
		b.Errorf("%s: %s, want %s", line, got, want)
	}
}

// expectRounds fails unless the masters got these rounds since the last call.
func (b *registerFixture) expectRounds(want ...string) {
	b.Helper()
	if got := b.masters.Rounds; !slices.Equal(got, want) {
		b.Errorf("the masters were asked\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	b.masters.Rounds = nil
}

// expectValue fails unless the masters hold this value.
func (b *registerFixture) expectValue(key, want string) {
	b.Helper()
	if got := b.masters.TextOf(key); got != want {
		b.Errorf("%s: %s, want %s", key, got, want)
	}
}

func oneLine(t *testing.T, raw string) string {
	t.Helper()
	replies := readReplies(t, raw)
	if len(replies) != 1 {
		t.Fatalf("%d replies: %q", len(replies), raw)
	}
	return replies[0].oneLine()
}

func (v value) oneLine() string {
	switch v.kind {
	case '_':
		return "(nil)"
	case ':':
		return v.text
	case '$':
		return fmt.Sprintf("%q", v.text)
	case '*':
		parts := make([]string, len(v.elements))
		for i, kid := range v.elements {
			parts[i] = kid.oneLine()
		}
		return "[" + strings.Join(parts, " ") + "]"
	default:
		return v.text
	}
}

// textLogger returns a logger that writes to a Builder.
func textLogger(to *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
