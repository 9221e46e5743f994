//go:build integration

package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestDrainDelay checks that, after SIGTERM, a proxy is not ready, but accepts and serves clients
// for drain-delay. Then it drains. A waiting LOCK is served meanwhile.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), append(adminArgs, "--drain-delay", "8s",
		"--drain-timeout", "20s")...)
	addr := adminAddr(t, proxy)
	holder := kit.Connect(t, proxy)
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
	waiter := kit.StartWaiter(t, proxy, "waiter")
	kit.WantBlocked(t, proxy, 1)
	startedAt := time.Now()
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	_, err := proxy.WaitLog("drain-delay=8s", kit.WaitLimit)
	kit.Must(t, err)
	code, body, err := getAdminPage(addr, "/readyz")
	if err != nil || code != 503 || !strings.HasPrefix(body, "[-]clients: shutting down; send no new clients\n") {
		t.Errorf("/readyz: %d, %v, %s", code, err, body)
	}
	lateClient := kit.Connect(t, proxy)
	kit.WantPrefix(t, lateClient, "PROXY HEALTH", "ready:no\r\ncause:the proxy is shutting down\r\n")
	if got := runProxy(t, "healthcheck", "--ready", "--listen", proxy.Addr()); got.code != 3 ||
		!strings.Contains(got.stderr, "the proxy is shutting down") {
		t.Errorf("healthcheck --ready: %+v", got)
	}
	if got := runProxy(t, "healthcheck", "--listen", proxy.Addr()); got != (outcome{}) {
		t.Errorf("healthcheck: %+v", got)
	}
	kit.WantGrant(t, lateClient, "LOCK", "late", "t", "PX", "60000")
	kit.WantPrefix(t, holder, "UNLOCK k holder", "1")
	if ms, _ := waiter.Receive(); ms == nil {
		t.Error("a client that waited is not served")
	}
	wantExit(t, proxy, 0, kit.WaitLimit)
	if elapsed := time.Since(startedAt); elapsed < 8*time.Second {
		t.Errorf("it drained after %v already", elapsed)
	}
	kit.WantLogged(t, proxy, "drained: all commands finished")
}

// TestSignalEndsDrainDelay checks that a second signal during the delay ends the process, as in the
// drain.
func TestSignalEndsDrainDelay(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--drain-delay", "1h")
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	_, err := proxy.WaitLog("drain-delay=1h0m0s", kit.WaitLimit)
	kit.Must(t, err)
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	wantExit(t, proxy, 1, kit.WaitLimit)
}

// failoverClient is a client that sends one command at a time to one of two proxies. When its
// connection ends, it changes to the other proxy.
type failoverClient struct {
	addrs            [2]string
	key              string
	conn             *redistest.Client
	currentIndex     int
	commands         int64
	connections      int64
	repeatedCommands int64 // commands whose connection ended before a reply
	// lateStep is the last step with a late reply. The state of its keys is unknown.
	lateStep int
}

// do sends a command until it gets a reply. If the connection ends, it repeats the command at the
// other proxy, and counts the command as repeated. This is safe, because a proxy that has executed
// a command sends the reply before it closes the connection.
func (r *failoverClient) do(command ...string) (any, error) {
	for attempt := 0; ; attempt++ {
		if r.conn == nil {
			conn, err := redistest.Dial(r.addrs[r.currentIndex], kit.WaitLimit)
			if err != nil && attempt < 10_000 {
				r.currentIndex = 1 - r.currentIndex
				time.Sleep(time.Millisecond) // a pause before the next attempt
				continue
			}
			if err != nil {
				return nil, err
			}
			r.conn = conn
			r.connections++
		}
		reply, err := r.conn.Do(command...)
		if reply == any(redistest.RespError("ERR the proxy is shutting down; try again")) {
			err = io.EOF
		}
		if err == nil {
			r.commands++
			return reply, nil
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) &&
			!errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		r.repeatedCommands++
		_ = r.conn.Close()
		r.conn, r.currentIndex = nil, 1-r.currentIndex
	}
}

// TestRollingRestart restarts two proxies under load in turn, several times. No lock is lost or
// held twice. Each command gets a reply, or its connection is closed before the command is
// executed. The counter at the upstream shows that.
func TestRollingRestart(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	args := []string{"--master-timeout", "5s", "--drain-delay", "300ms", "--drain-timeout", "30s", "--upstream",
		upstream.URL(), "--lock-keys", "lock:*"}
	var proxies [2]*harness.Proxy
	var addrs [2]string
	for i := range proxies {
		proxies[i] = kit.StartProxy(t, redistest.URLs(masters), args...)
		addrs[i] = proxies[i].Addr()
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	var holderCount, completedSteps, waits atomic.Int64
	clients := make([]*failoverClient, 12)
	failures := make(chan error, len(clients))
	for i := range clients {
		r := &failoverClient{addrs: addrs, currentIndex: i % 2, key: fmt.Sprint("k", i)}
		clients[i] = r
		step := r.lockOnce
		switch i % 3 {
		case 1:
			step = func(int) error { return r.waitOnce(&holderCount, &waits) }
		case 2:
			step = r.countOnce
		}
		workers.Go(func() {
			var err error
			for n := 1; ctx.Err() == nil && err == nil; n++ {
				if err = step(n); err == nil {
					completedSteps.Add(1)
				}
			}
			failures <- err
		})
	}
	standingHolder := kit.Dial(t, addrs[0])
	kit.WantGrant(t, standingHolder, "LOCK", "standing", "t", "EX", "3600")
	for round := range 4 {
		i := round % 2
		done := completedSteps.Load()
		kit.Await(t, "work", func() bool { return completedSteps.Load() > done+100 || len(failures) > 0 })
		kit.Must(t, proxies[i].Signal(syscall.SIGTERM))
		wantExit(t, proxies[i], 0, kit.WaitLimit)
		kit.WantLogged(t, proxies[i], "drained: all commands finished")
		done = completedSteps.Load()
		kit.Await(t, "work at one proxy", func() bool { return completedSteps.Load() > done+100 || len(failures) > 0 })
		proxies[i] = kit.StartProxy(t, redistest.URLs(masters), append(args, "--listen", addrs[i])...)
		kit.WantPrefix(t, kit.Connect(t, proxies[i]), "LOCK standing u PX 1000", "nil")
	}
	stop()
	workers.Wait()
	var commands, connections, repeatedCommands int64
	for _, r := range clients {
		kit.NoError(t, <-failures)
		commands, connections, repeatedCommands = commands+r.commands, connections+r.connections, repeatedCommands+r.repeatedCommands
	}
	kit.WantPrefix(t, kit.Connect(t, proxies[0]), "UNLOCK standing t", "1")
	t.Logf("4 restarts: %d commands, %d of them sent again, since their connection was closed; %d connections, %d turns with the common lock", commands, repeatedCommands, connections, waits.Load())
}

// lockOnce takes and releases its own lock. It fails if a repeated command was executed twice.
func (r *failoverClient) lockOnce(n int) error {
	key, token := r.lockName(), fmt.Sprint(r.key, "-", n)
	lockReply, err := r.do("LOCK", key, token, "PX", "60000")
	if kit.IsLate(lockReply) {
		r.lateStep = n
		return err
	}
	if ms, ok := lockReply.(int64); err == nil && (!ok || ms <= 0) {
		return fmt.Errorf("LOCK %s %s: %s", key, token, kit.ReplyText(lockReply))
	}
	if err != nil {
		return err
	}
	unlockReply, err := r.do("UNLOCK", key, token)
	if kit.IsLate(unlockReply) {
		r.lateStep = n
		return err
	}
	if err == nil && unlockReply != any(int64(1)) {
		err = fmt.Errorf("UNLOCK %s %s: %s", key, token, kit.ReplyText(unlockReply))
	}
	return err
}

// lockName returns a key whose state is known.
func (r *failoverClient) lockName() string { return fmt.Sprint(r.key, "-", r.lateStep) }

// countOnce increments a counter at the upstream, and a counter on a lock key by a script. It fails
// unless each command was executed exactly once.
func (r *failoverClient) countOnce(n int) error {
	got, err := r.do("INCR", "count:"+r.key)
	if err == nil && got != any(int64(n)) {
		err = fmt.Errorf("INCR %s: %s, want %d", r.key, kit.ReplyText(got), n)
	}
	if err != nil {
		return err
	}
	got, err = r.do("EVAL", `local n = redis.call("incr", KEYS[1]) redis.call("pexpire", KEYS[1], 60000) return n`, "1",
		"lock:count:"+r.lockName())
	if kit.IsLate(got) {
		r.lateStep = n // the next step begins a new counter
		return err
	}
	if want := n - r.lateStep; err == nil && got != any(int64(want)) {
		err = fmt.Errorf("EVAL %s: %s, want %d", r.lockName(), kit.ReplyText(got), want)
	}
	return err
}

// waitOnce waits for the common lock, checks that no other client holds it, and releases it.
func (r *failoverClient) waitOnce(holderCount, waits *atomic.Int64) error {
	lockReply, err := r.do("LOCK", "common", r.key, "PX", "60000", "BLOCK", "60000")
	if kit.IsLate(lockReply) { // the client may have the lock
		return kit.Release(r.do, "common", r.key, true)
	}
	if ms, ok := lockReply.(int64); err == nil && (!ok || ms <= 0) {
		err = fmt.Errorf("LOCK common %s: %s", r.key, kit.ReplyText(lockReply))
	}
	if err != nil {
		return err
	}
	if holderCount.Add(1) != 1 {
		return errors.New("two have the common lock")
	}
	waits.Add(1)
	time.Sleep(time.Millisecond) // the client holds the lock
	holderCount.Add(-1)
	return kit.Release(r.do, "common", r.key, false)
}
