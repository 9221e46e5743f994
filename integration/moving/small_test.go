//go:build integration

package moving

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const backFlag = "--back"

// clients returns a client of each proxy.
func (r *rig) clients() (clientA, clientB *redistest.Client) {
	r.t.Helper()
	return kit.Connect(r.t, r.proxies[0]), kit.Connect(r.t, r.proxies[1])
}

// wantOutput fails the test unless the program's output contains the texts.
func wantOutput(t *testing.T, output string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(output, word) {
			t.Errorf("said: %q, want %q in it", output, word)
		}
	}
}

// TestMoveTwice checks that a repeated move reports that there is nothing to move, and changes
// nothing. Aborting a move that has not begun changes nothing either.
func TestMoveTwice(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "600000")
	wantOutput(t, r.mustMove(0, backFlag), "nothing to move: the locks are at the upstream")
	wantOutput(t, r.mustMove(0, "--abort"), "the locks are at the upstream")
	wantOutput(t, r.mustMove(0), "the locks are at the masters now: 1 string", "removed 1 lock key from the upstream")
	wantOutput(t, r.mustMove(1), "nothing to move: the locks are at the masters")
	wantOutput(t, r.mustMove(1, "--abort"), "the locks are at the masters")
	kit.Want(t, clientB, nil, "SET", "lock:a", "you", "NX", "PX", "60000")
	kit.Want(t, clientB, nil, "LOCK", "lock:a", "you", "PX", "60000")
	kit.WantGrant(t, clientA, "EXTEND", "lock:a", "me", "PX", "600000")
	kit.Must(t, r.checkNoRemainingKeys(false))
	wantOutput(t, r.mustMove(1, backFlag), "the locks are at the upstream now: 1 string")
	wantOutput(t, r.mustMove(0, backFlag), "nothing to move")
	kit.Want(t, clientB, "me", "GET", "lock:a")
	kit.WantPrefix(t, clientA, "UNLOCK lock:a me", "ERR UNLOCK"+needsMastersError)
	kit.Want(t, clientA, int64(1), "EVAL", deleteScript, "1", "lock:a", "me")
	kit.Must(t, r.checkNoRemainingKeys(true))
}

// TestAbortedMove aborts a move that waits for a stopped proxy. The locks and commands stay at
// the upstream. The stopped proxy has a client in a transaction. The proxy has not reported that it
// has paused commands, and the masters have seen it recently.
func TestAbortedMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	operator := kit.Connect(t, r.proxies[0])
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	kit.Want(t, clientB, "OK", "MULTI")
	kit.Want(t, clientB, "QUEUED", "GET", "lock:a")
	moveErr := make(chan error, 1)
	go func() {
		_, err := r.move(0)
		moveErr <- err
	}()
	_, err := r.proxies[0].WaitLog("decided: to-masters", kit.WaitLimit)
	kit.Must(t, err)
	kit.Must(t, r.proxies[1].Pause())
	lockReply := make(chan any, 1)
	go func() {
		reply, _ := clientA.Do("SET", "lock:a", "you", "NX", "PX", "60000")
		lockReply <- reply
	}()
	wantOutput(t, kit.ReplyText(kit.Do(t, operator, "PROXY", "MOVE", "ABORT")), "aborted: the locks stay at the upstream")
	if err := <-moveErr; err == nil || !strings.Contains(err.Error(),
		"the locks stay at the upstream: redlock-proxy move --abort or another proxy has ended this move") {
		t.Errorf("the move that was given up said: %v", err)
	}
	if reply := <-lockReply; reply != nil {
		t.Errorf("it was granted twice: %v", reply)
	}
	kit.Must(t, r.proxies[1].Continue())
	if replies := kit.ReplyText(kit.Do(t, clientB, "EXEC")); replies != "[me]" {
		t.Errorf("EXEC of the transaction that had begun: %v", replies)
	}
	kit.Want(t, kit.Connect(t, r.proxies[1]), "me", "GET", "lock:a")
	kit.Must(t, r.checkNoRemainingKeys(true))
	r.mustMove(1)
	kit.Must(t, r.checkNoRemainingKeys(false))
}

// TestOldSettingsAfterTheMove starts a proxy after the move, with and without the setting
// move-from-upstream. The proxy gets the location of the locks from the masters.
func TestOldSettingsAfterTheMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, _ := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "600000")
	r.mustMove(0)
	for _, args := range [][]string{r.args, slices.DeleteFunc(slices.Clone(r.args),
		func(arg string) bool { return arg == "--move-from-upstream" })} {
		lateClient := kit.Connect(t, r.addProxy(args...))
		kit.Want(t, lateClient, nil, "SET", "lock:a", "you", "NX", "PX", "60000")
		kit.Want(t, lateClient, "me", "GET", "lock:a")
	}
	kit.Must(t, r.proxies[0].Kill())
	r.restart(0)
	kit.Want(t, kit.Connect(t, r.proxies[0]), "me", "GET", "lock:a")
	r.mustMove(2, "--even-if-others", backFlag) // the move may wait for a killed proxy
	kit.Want(t, kit.Connect(t, r.proxies[3]), "me", "GET", "lock:a")
	kit.Want(t, kit.Connect(t, r.proxies[3]), nil, "SET", "lock:a", "you", "NX", "PX", "60000")
	kit.Must(t, r.checkNoRemainingKeys(true))
}

// TestDifferentSettings checks that a proxy without the setting move-from-upstream grants no lock
// that is held at the upstream. It runs together with a proxy that has the setting.
func TestDifferentSettings(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, _ := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	without := slices.DeleteFunc(slices.Clone(r.args), func(arg string) bool { return arg == "--move-from-upstream" })
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: redistest.URLs(r.masters), Args: without})
	if err != nil {
		t.Logf("it does not start: %v", err)
		return
	}
	defer proxy.Close()
	client := kit.Dial(t, proxy.Addr())
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		reply, err := client.Do("SET", "lock:a", "you", "NX", "PX", "60000")
		kit.Must(t, err)
		if reply == "OK" {
			t.Errorf("BOTH were granted lock:a; its log:\n%s", proxy.Log())
			break
		}
	}
	t.Logf("it answers: %v", kit.Do(t, client, "SET", "lock:a", "you", "NX", "PX", "60000"))
	for _, line := range strings.Split(proxy.Log(), "\n") {
		if strings.Contains(line, "WARN") || strings.Contains(line, "ERROR") {
			t.Log(line)
		}
	}
	output, err := r.move(0)
	t.Logf("move: %q, %v", output, err)
}

// TestDifferentLockKeys checks that no locks are moved while a proxy with different lock keys runs,
// because that proxy would not pause its commands. When that proxy has ended, the locks are moved.
func TestDifferentLockKeys(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	args := slices.Concat(kit.LongMasterTimeoutArgs(), []string{"--upstream", "redis://" + r.upstream.Addr(), "--lock-keys",
		"job:*", "--move-from-upstream"})
	otherProxy, err := harness.StartProxy(harness.ProxyOptions{Masters: redistest.URLs(r.masters), Args: args})
	kit.Must(t, err)
	defer otherProxy.Close()
	client := kit.Dial(t, otherProxy.Addr())
	defer client.Close()
	// lock:a is not a lock key of the other proxy.
	kit.Want(t, client, "OK", "SET", "lock:a", "other", "NX", "PX", "600000")
	kit.Eventually(t, func() error {
		if _, err := r.move(0, "--even-if-others"); err == nil || !strings.Contains(err.Error(),
			"the locks stay at the upstream: another proxy on the masters has different lock settings") {
			return fmt.Errorf("move: %v", err)
		}
		return nil
	})
	clientA, _ := r.clients()
	kit.Want(t, clientA, nil, "SET", "lock:a", "me", "NX", "PX", "60000")
	kit.Must(t, otherProxy.Close())
	kit.Eventually(t, func() error {
		_, err := r.move(0, "--even-if-others")
		return err
	})
	kit.Want(t, clientA, nil, "SET", "lock:a", "me", "NX", "PX", "60000")
}

// TestDirectClients checks that a move names a client with a direct connection to the upstream
// before it changes anything. With --even-if-others, the move closes this connection.
func TestDirectClients(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, _ := r.clients()
	directClient := kit.Dial(t, r.upstream.Addr())
	kit.Want(t, directClient, "OK", "CLIENT", "SETNAME", "billing")
	kit.Want(t, directClient, "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	r.wantRefused(0, directClient.LocalAddr()+" name=billing")
	kit.Want(t, clientA, "me", "GET", "lock:a")
	kit.Want(t, directClient, "me", "GET", "lock:a")
	kit.Must(t, r.checkNoRemainingKeys(true))
	wantOutput(t, r.mustMove(0, "--even-if-others"), "name=billing", "closed 1 connection at the upstream")
	if reply, err := directClient.Do("PING"); err == nil {
		t.Errorf("the client at the upstream is not disconnected: %v", reply)
	}
	kit.Want(t, clientA, nil, "SET", "lock:a", "you", "NX", "PX", "60000")
}

// TestClientReconnectDuringMove checks that a move does not confuse the proxies' clients with
// direct clients of the upstream. The proxies' clients connect and disconnect during the move,
// which closes none of their connections.
func TestClientReconnectDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	var stopping atomic.Bool
	var clients sync.WaitGroup
	connects := atomic.Int64{}
	for i := range 8 {
		clients.Go(func() {
			for !stopping.Load() {
				client, err := redistest.Dial(r.addrs[i%2], kit.WaitLimit)
				if err != nil {
					t.Error(err)
					return
				}
				for _, words := range [][]string{{"GET", "data"}, {"GET", "data"}} {
					if reply, err := client.Do(words...); err != nil || reply != nil {
						t.Errorf("%v: %v, %v", words, reply, err)
					}
				}
				_ = client.Close()
				connects.Add(1)
				time.Sleep(5 * time.Millisecond) // sets the pace of a client
			}
		})
	}
	defer clients.Wait()
	defer stopping.Store(true)
	for i, flags := range [][]string{nil, {backFlag}, nil, {backFlag}} {
		if output := r.mustMove(i%2, flags...); strings.Contains(output, "closed") {
			t.Error(output)
		}
	}
	t.Logf("%d clients", connects.Load())
}

// TestUnsupportedKeys checks that a move names keys that the masters cannot store, and fails before
// it is decided.
func TestUnsupportedKeys(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, _ := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	kit.Do(t, clientA, "XADD", "lock:stream", "*", "a", "b")
	r.wantRefused(0, "lock:stream")
	if log := r.proxies[0].Log(); strings.Contains(log, "decided: to-masters") {
		t.Error("something was decided")
	}
	kit.Do(t, clientA, "DEL", "lock:stream")
	r.mustMove(0)
}

// TestWatchDuringMove begins a move while a client watches a lock key. EXEC returns nil, as if the
// key had changed. If the client has queued a command on the key before, the transaction may also
// succeed; then its effect is kept.
func TestWatchDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, back := range []bool{false, true} {
		for _, position := range []string{"before MULTI", "after MULTI", "after a command"} {
			t.Run(fmt.Sprintf("back=%v, %s", back, position), func(t *testing.T) {
				t.Parallel()
				r := startRig(t)
				clientA, clientB := r.clients()
				var flags []string
				if back {
					r.mustMove(0)
					flags = []string{backFlag}
				}
				kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "PX", "60000")
				kit.Want(t, clientA, "OK", "WATCH", "lock:a")
				kit.Want(t, clientA, "me", "GET", "lock:a")
				steps := []func(){
					func() { kit.Want(t, clientA, "OK", "MULTI") },
					func() { kit.Want(t, clientA, "QUEUED", "DEL", "lock:a") },
				}
				stepsBefore := map[string]int{"before MULTI": 0, "after MULTI": 1, "after a command": 2}[position]
				for _, step := range steps[:stepsBefore] {
					step()
				}
				moveErr := make(chan error, 1)
				go func() {
					_, err := r.move(1, flags...)
					moveErr <- err
				}()
				if stepsBefore == 2 { // the move waits for the transaction
					time.Sleep(1500 * time.Millisecond) // the move waits
				} else {
					kit.Must(t, <-moveErr)
					kit.Want(t, clientB, int64(1), "DEL", "lock:a")
					kit.Want(t, clientB, "OK", "SET", "lock:a", "me", "PX", "60000")
				}
				for _, step := range steps[stepsBefore:] {
					step()
				}
				reply := kit.Do(t, clientA, "EXEC")
				if stepsBefore == 2 {
					if replies, isList := reply.([]any); reply != nil && (!isList || len(replies) != 1 || replies[0] != int64(1)) {
						t.Errorf("EXEC: %v", reply)
					}
					err := <-moveErr
					exists := kit.Do(t, clientB, "EXISTS", "lock:a")
					t.Logf("EXEC: %v; EXISTS: %v; the move: %v", reply, exists, err)
					if (reply == nil) != (exists == int64(1)) {
						t.Errorf("EXEC: %v, and then EXISTS: %v", reply, exists)
					}
				} else if reply != nil {
					t.Errorf("EXEC: %v", reply)
				}
				kit.Want(t, clientA, "OK", "SET", "lock:b", "me", "NX", "PX", "1000")
			})
		}
	}
}

// TestLockInEarlierTransaction begins a transaction without lock keys before the move, and
// continues it when the proxies have paused commands. A command in the transaction that would take
// a lock does not take it at the upstream; the transaction fails.
func TestLockInEarlierTransaction(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:b", "me", "PX", "60000")
	kit.Want(t, clientA, "OK", "MULTI")
	wait := r.startMove(1)
	r.wantAllPaused()
	kit.Want(t, clientA, "QUEUED", "GET", "data")
	setReply := kit.ReplyText(kit.Do(t, clientA, "SET", "lock:a", "me", "NX", "PX", "60000"))
	execReply := kit.ReplyText(kit.Do(t, clientA, "EXEC"))
	wait()
	if !strings.Contains(execReply, "EXECABORT") {
		t.Errorf("SET: %s, EXEC: %s", setReply, execReply)
	}
	kit.Want(t, clientB, "OK", "SET", "lock:a", "other", "NX", "PX", "60000")
}

// TestTransactionsDuringMove checks that a transaction that began without lock keys continues after
// the move.
func TestTransactionsDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprint("back=", back), func(t *testing.T) {
			t.Parallel()
			r := startRig(t)
			clientA, clientB := r.clients()
			var flags []string
			if back {
				r.mustMove(0)
				flags = []string{backFlag}
			}
			kit.Want(t, clientA, "OK", "MULTI")
			r.mustMove(1, flags...)
			kit.Want(t, clientA, "QUEUED", "SET", "lock:a", "me", "NX", "PX", "60000")
			if reply := kit.ReplyText(kit.Do(t, clientA, "EXEC")); reply != "[OK]" {
				t.Errorf("EXEC: %v", reply)
			}
			kit.Want(t, clientB, "me", "GET", "lock:a")
		})
	}
}

// TestClientReplyOffDuringMove checks that a lock of a client that wants no replies (CLIENT REPLY
// OFF) is kept during a move. Then the client's DEL is executed, unless the move closed its
// connection.
func TestClientReplyOffDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	kit.Must(t, clientA.Send(redistest.AppendCommand(redistest.AppendCommand(nil, "CLIENT", "REPLY", "OFF"), "SET",
		"lock:a", "silent", "NX", "PX", "60000")))
	kit.Eventually(t, func() error {
		if got := kit.Do(t, clientB, "GET", "lock:a"); got != "silent" {
			return fmt.Errorf("GET: %v", got)
		}
		return nil
	})
	output := r.mustMove(1)
	t.Log(output)
	kit.Want(t, clientB, "silent", "GET", "lock:a")
	if err := clientA.Send(redistest.AppendCommand(nil, "DEL", "lock:a")); err == nil {
		if reply, err := clientA.Do("CLIENT", "REPLY", "ON"); err == nil && reply == "OK" {
			kit.Want(t, clientB, nil, "GET", "lock:a")
			return
		}
	}
	t.Log("its connection was ended")
	kit.Want(t, clientB, "silent", "GET", "lock:a")
}

// TestMoveWithPrefixAndTags moves the locks to the masters and back with key prefixes and tags.
func TestMoveWithPrefixAndTags(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for name, args := range map[string][]string{
		"key prefix":      {"--key-prefix", "app:"},
		"tags":            {"--lock-tags", "*"},
		"prefix and tags": {"--key-prefix", "app:", "--lock-tags", "*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startRig(t, args...).wantRoundTrip()
		})
	}
}

// wantRoundTrip moves locks of all kinds to the masters and back.
func (r *rig) wantRoundTrip() {
	t := r.t
	t.Helper()
	clientA, clientB := r.clients()
	for _, db := range []string{"0", "3"} {
		kit.Want(t, clientA, "OK", "SELECT", db)
		for _, k := range heldLocks {
			kit.Do(t, clientA, k.setCommand...)
			if k.expires {
				kit.Want(t, clientA, int64(1), "PEXPIRE", k.key, kit.Millis(heldLockTTL))
			}
		}
		kit.Want(t, clientA, "OK", "SET", "data", "x"+db)
		kit.Want(t, clientA, "OK", "SET", "lock:x:{tag}", "x"+db, "PX", "600000")
	}
	resp3Client, err := redistest.Dial(r.addrs[1], kit.WaitLimit) // a client with RESP3
	kit.Must(t, err)
	defer resp3Client.Close()
	kit.Do(t, resp3Client, "HELLO", "3")
	for _, flags := range [][]string{nil, {backFlag}, nil} {
		r.mustMove(1, flags...)
		for _, db := range []string{"0", "3"} {
			for _, client := range []*redistest.Client{clientA, clientB} {
				kit.Want(t, client, "OK", "SELECT", db)
				wantHeldLocks(t, client)
				kit.Want(t, client, "x"+db, "GET", "data")
				kit.Want(t, client, "x"+db, "GET", "lock:x:{tag}")
				kit.Want(t, client, nil, "SET", "lock:x:{tag}", "you", "NX", "PX", "60000")
			}
			kit.Want(t, resp3Client, "OK", "SELECT", db)
			if got := kit.ReplyText(kit.Do(t, resp3Client, "HGETALL", "lock:kept:hash")); got != "map[a:1:2 b:x]" {
				t.Errorf("over RESP3: %v", got)
			}
			if got := kit.Do(t, resp3Client, "SET", "lock:x:{tag}", "you", "NX", "PX", "60000"); got != nil {
				t.Errorf("over RESP3: %v", got)
			}
		}
		kit.Must(t, r.checkNoRemainingKeys(len(flags) > 0))
	}
}

// TestMissingPermissions checks that the move changes nothing if the proxy's user lacks permissions
// at the upstream.
func TestMissingPermissions(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	upstream := kit.StartRedis(t, redistest.DurableArgs()...)
	kit.Must(t, kit.SendToMaster(upstream, "ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all", "-client|kill"))
	r := &rig{t: t, upstream: upstream, masters: kit.StartMasters(t)}
	r.args = append([]string{"--lock-keys", "lock:*", "--move-from-upstream", "--upstream", "redis://few:secret@" +
		upstream.Addr(), "--share-upstream-login"}, kit.LongMasterTimeoutArgs()...)
	r.addProxy(r.args...)
	r.addProxy(r.args...)
	r.wantVoting()
	clientA, _ := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "600000")
	r.wantRefused(0, "NOPERM")
	kit.Want(t, clientA, "me", "GET", "lock:a")
	kit.Must(t, kit.SendToMaster(upstream, "ACL", "SETUSER", "few", "+client|kill"))
	r.mustMove(0)
	kit.Want(t, clientA, "me", "GET", "lock:a")
	for _, command := range []string{"exec", "pexpire", "del"} {
		kit.Must(t, kit.SendToMaster(upstream, "ACL", "SETUSER", "few", "-"+command))
		r.wantRefused(0, "NOPERM", "--back")
		kit.Must(t, kit.SendToMaster(upstream, "ACL", "SETUSER", "few", "+"+command))
	}
	kit.Want(t, clientA, "me", "GET", "lock:a")
	if log := r.proxies[0].Log(); strings.Count(log, `msg="the locks are being moved"`) != 1 {
		t.Errorf("a move back was begun: %s", log)
	}
	r.mustMove(0, "--back")
	kit.Want(t, clientA, "me", "GET", "lock:a")
}

// TestMoveWithMastersDown checks that clients that had locked at the upstream continue while most
// masters are down. Other clients get an error with the reason.
func TestMoveWithMastersDown(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	kit.Want(t, clientA, "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	for _, master := range r.masters[:3] {
		kit.Must(t, master.Kill())
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		kit.Want(t, clientA, "me", "GET", "lock:a")
		kit.Want(t, clientA, nil, "SET", "lock:a", "you", "NX", "PX", "60000")
	}
	kit.WantPrefix(t, clientB, "SET lock:a you NX PX 60000", "NOQUORUM")
	kit.WantPrefix(t, clientB, "SET data 1", "OK")
	if _, err := r.move(0); err == nil {
		t.Error("the locks were moved")
	} else {
		t.Log(err)
	}
	kit.Want(t, clientA, int64(1), "DEL", "lock:a")
}

// TestLockServerDuringMove checks that a proxy without an upstream grants no lock on lock keys
// while the locks are at the upstream. The proxy has the same lock keys as the other proxies.
func TestLockServerDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	r.mustMove(0)
	server := kit.StartProxy(t, redistest.URLs(r.masters), append(kit.LongMasterTimeoutArgs(), "--lock-keys", "lock:*")...)
	client, serverClient := kit.Dial(t, r.addrs[1]), kit.Connect(t, server)
	kit.Eventually(t, func() error {
		if reply := kit.Do(t, serverClient, "LOCK", "lock:a", "me", "PX", "600000"); reply == nil ||
			strings.HasPrefix(kit.ReplyText(reply), "NOQUORUM") {
			return fmt.Errorf("while the locks are at the masters: %v", reply)
		}
		return nil
	})
	kit.Want(t, client, "me", "GET", "lock:a")
	kit.Eventually(t, func() error { _, err := r.move(0, "--back"); return err })
	kit.Want(t, client, "me", "GET", "lock:a")
	kit.Want(t, client, "OK", "SET", "lock:b", "me", "NX", "PX", "600000")
	newClient := kit.Connect(t, kit.StartProxy(t, redistest.URLs(r.masters),
		append(kit.LongMasterTimeoutArgs(), "--lock-keys", "lock:*")...))
	const refusal = "ERR the locks on lock keys are at the upstream, which this proxy does not have; use a proxy that has it"
	for _, session := range []*redistest.Client{serverClient, newClient} {
		if health := fmt.Sprint(kit.Do(t, session, "PROXY", "HEALTH")); !strings.Contains(health, "ready:no\r\n") ||
			!strings.Contains(health, "the locks are at the upstream, which this proxy does not have") {
			t.Errorf("PROXY HEALTH: %s", health)
		}
		for _, command := range [][]string{
			{"LOCK", "lock:b", "other", "PX", "1000"}, {"SET", "lock:b", "other", "NX", "PX", "1000"},
			{"LOCK", "lock:b", "other", "PX", "1000", "BLOCK", "100"},
			{"UNLOCK", "lock:a", "me"}, {"EXTEND", "lock:a", "me", "PX", "1000"}, {"GET", "lock:a"}, {"DEL", "lock:a"},
			{"INCR", "lock:c"},
			{"EVAL", "return redis.call('get', KEYS[1])", "1", "lock:a"},
		} {
			if reply := kit.ReplyText(kit.Do(t, session, command...)); reply != refusal {
				t.Errorf("%v: %s", command, reply)
			}
		}
		// A move does not affect keys that are no lock keys.
		kit.WantGrant(t, session, "LOCK", "other", "me", "PX", "60000")
		kit.WantReleased(t, session, "other", "me")
	}
	r.mustMove(0)
	kit.Want(t, serverClient, "me", "GET", "lock:a")
	kit.Want(t, newClient, "me", "GET", "lock:b")
}

// TestProxiesOfTwoUpstreams checks that no locks are moved if proxies have different upstreams.
func TestProxiesOfTwoUpstreams(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	otherUpstream := kit.StartRedis(t)
	r.addProxy(slices.Concat(kit.LockKeyArgs(otherUpstream), kit.LongMasterTimeoutArgs(), []string{"--move-from-upstream"})...)
	r.wantVoting()
	kit.Want(t, kit.Dial(t, r.addrs[2]), "OK", "SET", "lock:there", "me", "NX", "PX", "60000")
	r.wantRefused(0, "has a different upstream", "--even-if-others")
	kit.Want(t, kit.Dial(t, r.addrs[0]), "OK", "SET", "lock:here", "me", "NX", "PX", "60000")
	kit.Want(t, kit.Dial(t, r.addrs[2]), "me", "GET", "lock:there")
	// A proxy that cannot ask its upstream may have a different one, too.
	kit.Must(t, kit.SendToMaster(otherUpstream, "ACL", "SETUSER", "default", "-info"))
	r.wantRefused(0, "do not know the run_id of their upstream", "--even-if-others")
	kit.Want(t, kit.Dial(t, r.addrs[2]), "me", "GET", "lock:there")
	kit.Must(t, kit.SendToMaster(otherUpstream, "ACL", "SETUSER", "default", "+info"))
	r.wantRefused(0, "has a different upstream", "--even-if-others")
}

// TestProxyWithOtherAddresses checks that the locks are not moved while another proxy knows the same
// masters by other addresses. An era names its masters by their addresses, so that proxy would lose
// all votes.
func TestProxyWithOtherAddresses(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	var urls []string
	for _, url := range redistest.URLs(r.masters) {
		urls = append(urls, strings.Replace(url, "127.0.0.1", "localhost", 1))
	}
	other := kit.StartProxy(t, urls, r.args...)
	fleet := &kit.Fleet{Masters: r.masters, Proxies: append(slices.Clone(r.proxies), other)}
	fleet.WantVoting(t, len(r.masters))
	r.wantRefused(0, "another proxy has the same masters by other addresses; use the same addresses on all proxies",
		"--even-if-others")
	kit.Want(t, kit.Connect(t, other), "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	kit.Must(t, other.Close())
	kit.Eventually(t, func() error { // the masters have told this proxy that the other one is gone
		_, err := r.move(0)
		return err
	})
	kit.Want(t, kit.Connect(t, r.proxies[1]), "me", "GET", "lock:a")
}
