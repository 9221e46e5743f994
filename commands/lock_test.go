package commands

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum"

	"github.com/hashicorp/go-multierror"
)

// noQuorum returns the error for a failure of three of five masters.
func noQuorum() error {
	causes := multierror.Append(
		&quorum.MasterError{Master: "10.0.0.1:6379", Err: syscall.ECONNREFUSED},
		&quorum.MasterError{Master: "10.0.0.2:6379", Err: context.DeadlineExceeded},
		&quorum.MasterError{Master: "10.0.0.3:6379", Err: errors.New("LOADING Redis is loading\r\nthe dataset")},
	)
	causes.ErrorFormat = func(errs []error) string {
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		return strings.Join(texts, "; ")
	}
	return &quorum.NoQuorumError{Masters: 5, VoteCount: 2, Causes: causes}
}

const noQuorumReply = "-NOQUORUM 2 of 5 masters answered, 3 needed: 10.0.0.1:6379: connection refused; " +
	"10.0.0.2:6379: no answer in time; 10.0.0.3:6379: LOADING Redis is loading  the dataset\r\n"

// generatedToken is the token that the fixture's proxy generates for *, from fixed random bits.
const generatedToken = "000102030405060708090a0b0c0d0e0f"

var lockReplies = []struct {
	title   string
	proto   int
	err     error
	command string
	want    string
	call    string
}{
	{"granted", 2, nil, "LOCK k t PX 10000", ":9888\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"granted, RESP3", 3, nil, "LOCK k t PX 10000", ":9888\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"granted, in seconds", 2, nil, "lock k t EX 10", ":9888\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"granted with a made token", 2, nil, "LOCK k * PX 10000",
		"*4\r\n$8\r\nvalidity\r\n:9888\r\n$5\r\ntoken\r\n$32\r\n" + generatedToken + "\r\n", "lock 0/k by " +
			generatedToken + " for 10s, waiting 0s"},
	{"granted with a made token, RESP3", 3, nil, "LOCK k * PX 10000",
		"%2\r\n$8\r\nvalidity\r\n:9888\r\n$5\r\ntoken\r\n$32\r\n" + generatedToken + "\r\n", "lock 0/k by " +
			generatedToken + " for 10s, waiting 0s"},
	{"granted, and when", 2, nil, "LOCK k t PX 10000 AT",
		"*4\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"granted, and when, RESP3", 3, nil, "LOCK k t at PX 10000",
		"%2\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"granted with a made token, and when", 2, nil, "LOCK k * PX 10000 AT",
		"*6\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n$5\r\ntoken\r\n$32\r\n" + generatedToken + "\r\n",
		"lock 0/k by " + generatedToken + " for 10s, waiting 0s"},
	{"granted with a made token, and when, RESP3", 3, nil, "LOCK k * AT BLOCK 5 PX 10000",
		"%3\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n$5\r\ntoken\r\n$32\r\n" + generatedToken + "\r\n",
		"lock 0/k by " + generatedToken + " for 10s, waiting 5ms"},
	{"granted with a fence", 2, nil, "LOCK k t PX 10000 FENCE",
		"*6\r\n$8\r\nvalidity\r\n:9888\r\n$5\r\ntoken\r\n$1\r\nt\r\n$5\r\nfence\r\n:1700000000000001\r\n",
		"lock 0/k by t for 10s, waiting 0s, with a fence"},
	{"granted with a fence, RESP3", 3, nil, "LOCK k t fence PX 10000",
		"%3\r\n$8\r\nvalidity\r\n:9888\r\n$5\r\ntoken\r\n$1\r\nt\r\n$5\r\nfence\r\n:1700000000000001\r\n",
		"lock 0/k by t for 10s, waiting 0s, with a fence"},
	{"granted with all", 3, nil, "LOCK k * AT PX 10000 FENCE BLOCK 5",
		"%4\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n$5\r\ntoken\r\n$32\r\n" +
			generatedToken + "\r\n$5\r\nfence\r\n:1700000000000001\r\n", "lock 0/k by " +
			generatedToken + " for 10s, waiting 5ms, with a fence"},
	{"held, with a fence", 2, quorum.ErrHeld, "LOCK k t PX 10000 FENCE", "$-1\r\n",
		"lock 0/k by t for 10s, waiting 0s, with a fence"},
	{"no fence is left", 2, quorum.ErrFences, "LOCK k t PX 10000 FENCE",
		"-ERR the fences of the key are used up\r\n", "lock 0/k by t for 10s, waiting 0s, with a fence"},
	{"the last fence", 2, nil, "fence k", ":1700000000000001\r\n", "fence of 0/k"},
	{"the last fence, no quorum", 3, noQuorum(), "FENCE k", noQuorumReply, "fence of 0/k"},
	{"the fence of many", 2, nil, "FENCE k l", "-ERR wrong number of arguments for 'fence' command: FENCE key\r\n", ""},
	{"EXTEND takes no fence", 2, nil, "EXTEND k t PX 20000 FENCE",
		"-ERR syntax error: unexpected 'FENCE'; use EXTEND key token PX milliseconds|EX seconds [KEEPALIVE [MAXHOLD milliseconds]] [AT]\r\n", ""},
	{"held, whenever", 2, quorum.ErrHeld, "LOCK k t PX 10000 AT", "$-1\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"held", 2, quorum.ErrHeld, "LOCK k t PX 10000", "$-1\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"held, RESP3", 3, quorum.ErrHeld, "LOCK k t PX 10000", "_\r\n", "lock 0/k by t for 10s, waiting 0s"},
	{"held, no token is made known", 3, quorum.ErrHeld, "LOCK k * PX 10000", "_\r\n", "lock 0/k by " +
		generatedToken + " for 10s, waiting 0s"},
	{"held to the end of BLOCK", 2, quorum.ErrHeld, "LOCK k t PX 10000 BLOCK 50", "$-1\r\n",
		"lock 0/k by t for 10s, waiting 50ms"},
	{"waiting for ever", 2, nil, "LOCK k t BLOCK 0 PX 10000", ":9888\r\n", "lock 0/k by t for 10s, waiting -1ns"},
	{"no quorum", 2, noQuorum(), "LOCK k t PX 10000", noQuorumReply, "lock 0/k by t for 10s, waiting 0s"},
	{"shutting down", 2, ErrShuttingDown, "LOCK k t PX 10000", "-ERR the proxy is shutting down; try again\r\n",
		"lock 0/k by t for 10s, waiting 0s"},
	{"any other error", 3, errors.New("two\nlines"), "LOCK k t PX 10000", "-ERR two lines\r\n",
		"lock 0/k by t for 10s, waiting 0s"},
	{"bad options ask nobody", 2, nil, "LOCK k t PX 0", "-ERR invalid expire time in 'lock' command\r\n", ""},
	{"too few words", 2, nil, "LOCK k t PX",
		"-ERR wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]\r\n", ""},

	{"released", 2, nil, "UNLOCK k t", ":1\r\n", "unlock 0/k by t"},
	{"not held", 2, quorum.ErrNotHeld, "UNLOCK k t", ":0\r\n", "unlock 0/k by t"},
	{"not held, RESP3", 3, quorum.ErrNotHeld, "UNLOCK k t", ":0\r\n", "unlock 0/k by t"},
	{"no quorum to release", 2, noQuorum(), "UNLOCK k t", noQuorumReply, "unlock 0/k by t"},
	{"* is a token like any other to release", 2, nil, "UNLOCK k *", ":1\r\n", "unlock 0/k by *"},
	{"too many words to release", 2, nil, "UNLOCK k t PX",
		"-ERR wrong number of arguments for 'unlock' command: UNLOCK key token\r\n", ""},

	{"extended", 2, nil, "EXTEND k t PX 20000", ":9888\r\n", "extend 0/k by t for 20s"},
	{"extended, in seconds", 3, nil, "extend k t ex 20", ":9888\r\n", "extend 0/k by t for 20s"},
	{"extended, and when", 2, nil, "EXTEND k t PX 20000 AT",
		"*4\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n", "extend 0/k by t for 20s"},
	{"extended, and when, RESP3", 3, nil, "EXTEND k t AT EX 20",
		"%2\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n", "extend 0/k by t for 20s"},
	{"not held any more, whenever", 3, quorum.ErrNotHeld, "EXTEND k t AT PX 20000", "_\r\n", "extend 0/k by t for 20s"},
	{"kept without a connection", 2, nil, "LOCK k t PX 10000 KEEPALIVE", "-ERR KEEPALIVE needs a client connection\r\n", ""},
	{"AT twice", 2, nil, "EXTEND k t AT PX 20000 AT",
		"-ERR syntax error: unexpected 'AT'; use EXTEND key token PX milliseconds|EX seconds [KEEPALIVE [MAXHOLD milliseconds]] [AT]\r\n", ""},
	{"not held any more", 2, quorum.ErrNotHeld, "EXTEND k t PX 20000", "$-1\r\n", "extend 0/k by t for 20s"},
	{"not held any more, RESP3", 3, quorum.ErrNotHeld, "EXTEND k t PX 20000", "_\r\n", "extend 0/k by t for 20s"},
	{"no quorum to extend", 2, noQuorum(), "EXTEND k t PX 20000", noQuorumReply, "extend 0/k by t for 20s"},
	{"* is a token like any other to extend", 2, nil, "EXTEND k * PX 20000", ":9888\r\n", "extend 0/k by * for 20s"},
	{"nothing waits to extend", 2, nil, "EXTEND k t PX 20000 BLOCK 5",
		"-ERR syntax error: unexpected 'BLOCK'; use EXTEND key token PX milliseconds|EX seconds [KEEPALIVE [MAXHOLD milliseconds]] [AT]\r\n", ""},
	{"over the limit", 2, nil, "EXTEND k t EX 86401",
		"-ERR invalid expire time in 'extend' command: the TTL exceeds max-ttl (86400000 ms)\r\n", ""},
	{"too few words to extend", 2, nil, "EXTEND k t",
		"-ERR wrong number of arguments for 'extend' command: EXTEND key token PX milliseconds|EX seconds [KEEPALIVE [MAXHOLD milliseconds]] [AT]\r\n", ""},
}

func TestLockReplies(t *testing.T) {
	for _, test := range lockReplies {
		t.Run(test.title, func(t *testing.T) {
			b := newFixture(t)
			b.client.Proto, b.locks.err = test.proto, test.err
			b.expect(test.command, test.want)
			if test.call == "" {
				b.expectCalls()
			} else {
				b.expectCalls(test.call)
			}
		})
	}
}

// TestLeaseAfterWait checks that the reply to a LOCK with AT has the duration of the wait.
func TestLeaseAfterWait(t *testing.T) {
	b := newFixture(t)
	b.locks.leaseStart = time.Now().Add(time.Hour)
	b.client.Proto = 3
	reply := readReplies(t, b.askLine("LOCK k t PX 10000 BLOCK 0 AT"))[0]
	waited, ok := reply.entry("waited")
	if ms, _ := syntax.Int(waited.text); !ok || ms < 3_590_000 || ms > 3_600_000 {
		t.Errorf("waited %v", waited)
	}
}

// TestDistinctTokens checks that each * gets new random bits.
func TestDistinctTokens(t *testing.T) {
	b := newFixture(t)
	first, second := b.askLine("LOCK k * PX 10000"), b.askLine("LOCK k * PX 10000")
	if first == second || !strings.Contains(second, "$32\r\n101112131415161718191a1b1c1d1e1f\r\n") {
		t.Errorf("%q, then %q", first, second)
	}
}

func TestRandomTokens(t *testing.T) {
	b := newFixture(t)
	b.table = NewTable(Options{Locks: b.locks, Settings: Settings{MaxTTL: time.Hour}})
	seen := map[string]bool{}
	for range 100 {
		token := regexp.MustCompile(`[0-9a-f]{32}`).FindString(b.askLine("LOCK k * PX 10000"))
		if token == "" || seen[token] {
			t.Fatalf("token %q, after %d others", token, len(seen))
		}
		seen[token] = true
	}
}

// TestLockKeys checks that locks of different databases are different. Clients can neither see nor
// omit the prefix.
func TestLockKeys(t *testing.T) {
	b := newFixture(t)
	b.table = NewTable(Options{Locks: b.locks, Settings: Settings{MaxTTL: time.Hour}, KeyPrefix: "lock:"})
	b.askLine("SELECT 3")
	b.askLine("LOCK k t PX 10000")
	b.askLine("EXTEND lock:k t PX 10000")
	b.askLine("SELECT 0")
	b.ask("UNLOCK", "l", "t")
	b.expectCalls("lock 3/lock:k by t for 10s, waiting 0s", "extend 3/lock:lock:k by t for 10s", "unlock 0/lock:l by t")
}

func TestUndeliveredGrant(t *testing.T) {
	b := newFixture(t)
	b.client.DB = 2
	ctx, cancel := context.WithCancel(t.Context())
	b.askIn(ctx, "LOCK", "a", "t", "PX", "10000")
	b.askIn(ctx, "LOCK", "b", "*", "PX", "10000")
	cancel() // like the context of a client that has disconnected
	b.expectCalls("lock 2/a by t for 10s, waiting 0s", "lock 2/b by "+generatedToken+" for 10s, waiting 0s")
	b.out.UndoUndelivered()
	b.expectCalls("withdraw 2/a of t", "withdraw 2/b of "+generatedToken)
	b.out.UndoUndelivered()
	b.expectCalls()
}

func TestDeliveredGrant(t *testing.T) {
	b := newFixture(t)
	b.askLine("LOCK k t PX 10000")
	b.out.NoteDelivered()
	b.expectCalls("lock 0/k by t for 10s, waiting 0s")
	b.out.UndoUndelivered()
	b.expectCalls()
}

// TestUndeliveredRefusal checks that the session does not undo a failed LOCK: the key
// may hold an older lock with the same token.
func TestUndeliveredRefusal(t *testing.T) {
	b := newFixture(t)
	for _, err := range []error{quorum.ErrHeld, noQuorum(), ErrShuttingDown} {
		b.locks.err = err
		b.askLine("LOCK k t PX 10000")
	}
	b.locks.err = nil
	b.askLine("EXTEND k t PX 10000")
	b.askLine("UNLOCK k t")
	b.locks.calls = nil
	b.out.UndoUndelivered()
	b.expectCalls()
}

var errDisconnected = errors.New("the client left")

func TestWatchOfBlockingLock(t *testing.T) {
	b := newFixture(t)
	watches, stops := 0, 0
	var lockCtx context.Context
	b.locks.onLock = func(ctx context.Context) { lockCtx = ctx }
	b.client.Wait = func(ctx context.Context) (context.Context, func()) {
		watches++
		waitCtx, cancel := context.WithCancelCause(ctx)
		return waitCtx, func() { stops++; cancel(errDisconnected) }
	}
	for _, line := range []string{"LOCK k t PX 10000", "UNLOCK k t", "EXTEND k t PX 10000", "LOCK k t PX 0 BLOCK 5",
		"LOCK k t PX 5 BLOCK x"} {
		if b.askLine(line); watches != 0 {
			t.Fatalf("%s: watched", line)
		}
	}
	for i, line := range []string{"LOCK k t PX 10000 BLOCK 5", "LOCK k * BLOCK 0 EX 1"} {
		b.askLine(line)
		if watches != i+1 || stops != i+1 {
			t.Errorf("%s: %d watches begun, %d stopped", line, watches, stops)
		}
		if context.Cause(lockCtx) != errDisconnected {
			t.Errorf("%s: waited in another context than the watched one", line)
		}
	}
	b.out.UndoUndelivered()
	// Undelivered undoes three grants after the watch has ended.
	if got := len(b.locks.calls); got != 1+1+1+2+3 {
		t.Errorf("asked %q", b.locks.calls)
	}
}

func TestDisconnectDuringWait(t *testing.T) {
	b := newFixture(t)
	b.client.Wait = func(ctx context.Context) (context.Context, func()) {
		waitCtx, cancel := context.WithCancelCause(ctx)
		cancel(errDisconnected)
		return waitCtx, func() {}
	}
	b.expect("LOCK k t PX 10000 BLOCK 0", "-ERR the client left\r\n")
	b.out.UndoUndelivered()
	b.expectCalls("lock 0/k by t for 10s, waiting -1ns")
}

// TestWaitOfSilentClient checks that CLIENT REPLY SKIP removes exactly the current reply. This must
// hold even if the wait writes the pending replies, which moves the place of the current reply.
func TestWaitOfSilentClient(t *testing.T) {
	b := newFixture(t)
	b.client.Wait = func(ctx context.Context) (context.Context, func()) {
		b.out.NoteDelivered()
		return ctx, func() {}
	}
	b.expect("PING", "+PONG\r\n")
	b.expect("CLIENT REPLY SKIP", "")
	b.askLine("LOCK k t PX 10000 BLOCK 0")
	if got := string(b.out.Bytes); got != "" {
		t.Errorf("a silent LOCK leaves %q", got)
	}
	b.expect("PING", "+PONG\r\n")
}

// TestRunsWithoutClient checks that RunsWithoutClient is true only for a command that does not use
// its client. A LOCK that may wait uses it, because it watches for the client to disconnect.
func TestRunsWithoutClient(t *testing.T) {
	table := newFixture(t).table
	for words, want := range map[string]bool{
		"LOCK k t PX 5000":          true,
		"lock k t ex 5 at fence":    true,
		"LOCK k t PX 5000 BLOCK 0":  false,
		"LOCK k t bLoCk 10 PX 5000": false,
		"LOCK k block PX 5000":      false, // block is the token; false is always safe
		"MLOCK 2 k l t PX 5000":     true,
		"MLOCK 1 k t PX 5 BLOCK 0":  false,
		"MUNLOCK 1 k t":             true,
		"MEXTEND 1 k t PX 5000":     true,
		"UNLOCK k t":                true,
		"EXTEND k t PX 5000":        true,
		"FENCE k":                   false,
		"LOCKINFO k":                false,
		"PROXY INFO":                false,
		"CLIENT REPLY OFF":          false,
		"QUIT":                      false,
		"HELLO 3 AUTH default a":    false,
	} {
		args := syntax.Bytes(strings.Fields(words))
		if cmd := table.Lookup(args[0]); (cmd.RunsWithoutClient != nil && cmd.RunsWithoutClient(args)) != want {
			t.Errorf("%s: brief %v", words, !want)
		}
	}
}
