//go:build integration

package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// workCounts counts the operations that clients completed.
type workCounts struct{ commands, grants, waits, connections atomic.Int64 }

// loadClient is a client with one connection, which must not break, and its own key.
type loadClient struct {
	conn   *redistest.Client
	key    string
	counts *workCounts
	// isLate is set if a reply in this step was late. Then the step sends no further commands.
	isLate bool
	// lateSteps counts the steps with a late reply. The state of their locks is unknown.
	lateSteps int
}

// do sends a command and returns its reply. If this or an earlier reply of the step is late, the
// outcome is not known.
func (c *loadClient) do(command ...string) (reply any, known bool, err error) {
	if c.isLate {
		return nil, false, nil
	}
	reply, err = c.conn.Do(command...)
	c.counts.commands.Add(1)
	c.isLate = kit.IsLate(reply)
	return reply, !c.isLate, err
}

// wantReply sends a command, and returns an error unless it gets the reply want, or a late reply.
func (c *loadClient) wantReply(want any, command ...string) error {
	got, known, err := c.do(command...)
	if known && err == nil && kit.ReplyText(got) != kit.ReplyText(want) {
		err = fmt.Errorf("%v: got %s, want %s", command, kit.ReplyText(got), kit.ReplyText(want))
	}
	return err
}

// wantGrant sends a command, and returns an error unless the reply is a validity, or late.
func (c *loadClient) wantGrant(command ...string) error {
	got, known, err := c.do(command...)
	if !known || err != nil {
		return err
	}
	if ms, ok := got.(int64); !ok || ms <= 0 {
		return fmt.Errorf("%v: got %s, want a validity", command, kit.ReplyText(got))
	}
	c.counts.grants.Add(1)
	return nil
}

// endStep lets the next step use other locks if a reply was late.
func (c *loadClient) endStep() {
	if c.isLate {
		c.isLate = false
		c.lateSteps++
	}
}

// lockName returns a key whose state is known.
func (c *loadClient) lockName() string { return fmt.Sprint(c.key, "-", c.lateSteps) }

// lockOnce takes and releases locks that no other client uses, by LOCK and UNLOCK, and by SET NX
// and a script.
func (c *loadClient) lockOnce(int) error {
	key := c.lockName()
	lock := "lock:" + key
	return errors.Join(
		c.wantGrant("LOCK", key, "t", "PX", "60000"), c.wantReply(nil, "LOCK", key, "u", "PX", "60000"),
		c.wantGrant("EXTEND", key, "t", "PX", "60000"), c.wantReply(int64(1), "UNLOCK", key, "t"),
		c.wantReply("OK", "SET", lock, "t", "NX", "PX", "60000"), c.wantReply(int64(1), "EVAL",
			`return redis.call("del", KEYS[1])`, "1", lock))
}

// relayOnce increments a counter at the upstream, which reveals lost and repeated commands.
func (c *loadClient) relayOnce(n int) error { return c.wantReply(int64(n), "INCR", "count:"+c.key) }

// runTransactions executes a transaction at the upstream, and a transaction on lock keys.
func (c *loadClient) runTransactions(n int) error {
	count, lock := "multi:"+c.key, "lock:multi:"+c.lockName()
	return errors.Join(
		c.wantReply("OK", "MULTI"), c.wantReply("QUEUED", "INCR", count), c.wantReply("QUEUED", "INCR", count),
		c.wantReply([]any{int64(2*n - 1), int64(2 * n)}, "EXEC"),
		c.wantReply("OK", "WATCH", lock), c.wantReply("OK", "MULTI"), c.wantReply("QUEUED", "SET", lock, strconv.Itoa(n), "PX", "60000"),
		c.wantReply("QUEUED", "GET", lock), c.wantReply([]any{"OK", strconv.Itoa(n)}, "EXEC"))
}

// waitOnce waits for the common lock of all these clients, and checks that no other client holds
// it.
func (c *loadClient) waitOnce(holderCount *atomic.Int64) error {
	if err := c.wantGrant("LOCK", "common", c.key, "PX", "60000", "BLOCK", "0"); err != nil {
		return err
	}
	if c.isLate { // the client may have the lock
		return kit.Release(c.conn.Do, "common", c.key, true)
	}
	if holderCount.Add(1) != 1 {
		return errors.New("two have the common lock")
	}
	c.counts.waits.Add(1)
	time.Sleep(2 * time.Millisecond) // the client holds the lock
	holderCount.Add(-1)
	return kit.Release(c.conn.Do, "common", c.key, false)
}

// connectOnce connects for one PING without TLS. It may get the error that the port requires TLS.
func (c *loadClient) connectOnce(addr string) error {
	conn, err := redistest.Dial(addr, kit.WaitLimit)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.counts.connections.Add(1)
	got, err := conn.Do("PING")
	if text := kit.ReplyText(got); err == nil && text != "PONG" && !strings.HasPrefix(text, "ERR this port requires TLS") {
		err = fmt.Errorf("a new client: %s", text)
	}
	return err
}

// TestReloadsUnderLoad reloads the configuration by SIGHUP and by PROXY RELOAD alternately, while
// clients lock, relay, hold transactions and wait for locks. The reloads bring different settings,
// new certificates, TLS on and off, and invalid files. No connection, no reply and no lock is lost.
// REDLOCK_RELOADS is the number of reloads.
func TestReloadsUnderLoad(t *testing.T) {
	reloads := int(kit.SizeFrom(t, "REDLOCK_RELOADS", 100))
	r := startReloadRig(t, map[string]string{"master-timeout": "5s", "max-clients": "100"})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	var counts workCounts
	var holderCount atomic.Int64
	failures := make(chan error, 24)
	for i := range cap(failures) {
		c := &loadClient{conn: kit.Connect(t, r.proxy), key: fmt.Sprint("k", i), counts: &counts}
		step := map[int]func(int) error{
			0: c.lockOnce, 1: c.relayOnce, 2: c.runTransactions, 3: func(int) error { return c.waitOnce(&holderCount) },
			4: func(int) error { return c.connectOnce(r.proxy.Addr()) },
		}[i%5]
		workers.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				if err := step(n); err != nil {
					failures <- fmt.Errorf("client %d, step %d: %w", i, n, err)
					return
				}
				c.endStep()
			}
			failures <- nil
		})
	}
	holderClient := kit.Connect(t, r.proxy)
	kit.WantGrant(t, holderClient, "LOCK", "held", "t", "EX", "3600") // held during all reloads
	ca := certtest.NewCA(t)
	pair := ca.Issue(t)
	startedAt, reloaded, refused := time.Now(), 0, 0
	for n := range reloads {
		if r.reloadOnce(n, ca, pair) {
			refused++
		}
		reloaded++
		completed := counts.commands.Load() // the following commands run with the new settings
		kit.Await(t, "more commands, with "+strconv.Itoa(n)+" reloads",
			func() bool { return counts.commands.Load() > completed+50 || len(failures) > 0 })
		if len(failures) > 0 {
			break
		}
	}
	elapsed := time.Since(startedAt)
	kit.Want(t, holderClient, nil, "LOCK", "held", "u", "PX", "1000")
	kit.WantReleased(t, holderClient, "held", "t")
	stop()
	workers.Wait()
	for range cap(failures) {
		kit.NoError(t, <-failures)
	}
	if counts.waits.Load() == 0 || counts.connections.Load() == 0 {
		t.Error("the clients did nothing")
	}
	t.Logf("%d reloads, of which %d were refused, in %v: %d commands, %d grants, %d of them waited for, %d new connections",
		reloaded, refused, elapsed.Round(time.Millisecond), counts.commands.Load(), counts.grants.Load(), counts.waits.Load(),
		counts.connections.Load())
}

// reloadOnce changes settings and reloads the configuration by SIGHUP or by PROXY RELOAD. It waits
// until the proxy has reported the result, and reports whether the configuration was invalid.
func (r *reloadRig) reloadOnce(n int, ca *certtest.CA, pair certtest.Pair) (refused bool) {
	r.t.Helper()
	r.settings["max-ttl"] = strconv.Itoa(2+n%7) + "h"
	r.settings["locks-without-ttl"] = []string{"allow", "refuse"}[n%2]
	r.settings["audit-log"] = strconv.FormatBool(n%5 == 0)
	r.settings["log-format"] = []string{"text", "json"}[n%3/2]
	// The limit is never too low, because a refused client may see a reset instead of the error, as
	// with Redis.
	r.settings["max-clients"] = []string{"100", "90", "80"}[n%11%3]
	r.settings["upstream-timeout"] = strconv.Itoa(10+n%3) + "s"
	r.settings["tls-cert"], r.settings["tls-key"] = `""`, `""`
	if n%4 == 1 {
		pair.CopyFrom(r.t, ca.Issue(r.t))
	}
	if n%4 > 0 {
		r.settings["tls-cert"], r.settings["tls-key"] = pair.Cert, pair.Key
	}
	switch r.write(); {
	case n%10 == 3:
		r.replace("max-ttl: 12x\n")
		refused = true
	case n%10 == 7:
		r.replace("master: [\n")
		refused = true
	case n%20 == 9:
		kit.Must(r.t, os.WriteFile(pair.Cert, []byte("broken"), 0o600))
		refused = true
	}
	if n%2 == 0 {
		kit.Must(r.t, r.proxy.Signal(syscall.SIGHUP))
		// The PROXY RELOAD follows the signal's reload, or includes it: both read the same files.
		_ = kit.Do(r.t, r.operator, "PING")
	}
	reply := kit.Do(r.t, r.operator, "PROXY", "RELOAD")
	if _, isError := reply.(redistest.RespError); isError != refused {
		r.t.Errorf("reload %d: %s", n, kit.ReplyText(reply))
	}
	if n%20 == 9 {
		pair.CopyFrom(r.t, ca.Issue(r.t))
	}
	return refused
}
