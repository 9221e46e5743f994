package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	queued          = "+QUEUED\r\n"
	ok              = "+OK\r\n"
	execAbort       = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	nestedMulti     = "-ERR MULTI calls can not be nested\r\n"
	watchInMulti    = "-ERR WATCH inside MULTI is not allowed\r\n"
	lateSetError    = "-ERR 'set' on a lock key cannot be part of a transaction on other keys: lock keys are on the lock masters; send two transactions\r\n"
	lateDelError    = "-ERR 'del' on a lock key cannot be part of a transaction on other keys: lock keys are on the lock masters; send two transactions\r\n"
	otherSetError   = "-ERR 'SET' cannot be part of a transaction on lock keys: key 'a' is on the upstream; send two transactions\r\n"
	mixedWatchError = "-ERR 'watch' cannot watch both lock keys and other keys: lock keys are on the lock masters, other keys on the upstream; watch one kind at a time\r\n"
)

// notInMulti returns the error for one of the proxy's own commands in a transaction.
func notInMulti(name string) string {
	return "-ERR " + name +
		" inside MULTI is not allowed: the proxy runs it at once, so it cannot be part of a transaction; send it before MULTI or after EXEC\r\n"
}

// lockTransactions lists transactions of one client each. At first lock:a has the value "me" on the
// masters, and the upstream is empty.
var lockTransactions = []struct {
	name              string
	script            []exchange
	wantUpstreamValue string // the final value of the upstream's key a
	wantLockValue     string // the final state of lock:a
}{
	{"watched, unchanged", []exchange{{"WATCH lock:a", ok}, {"GET lock:a", bulk("me")}, {"MULTI", ok},
		{"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"watched, changed", []exchange{{"WATCH lock:a", ok}, {"SET lock:a you", ok}, {"MULTI", ok}, {"DEL lock:a", queued},
		{"EXEC", "*-1\r\n"}}, "", "you"},
	{"watched, changed, then unwatched", []exchange{{"WATCH lock:a", ok}, {"SET lock:a you", ok}, {"UNWATCH", ok},
		{"MULTI", ok}, {"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"discarded", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"DEL lock:a", queued}, {"DISCARD", ok},
		{"GET lock:a", bulk("me")}}, "", "me"},
	{"a watch ends with its EXEC", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"EXEC", "*0\r\n"},
		{"SET lock:a you", ok}, {"MULTI", ok}, {"GET lock:a", queued}, {"EXEC", "*1\r\n" + bulk("you")}}, "", "you"},
	{"a watch ends with DISCARD", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"DISCARD", ok},
		{"SET lock:a you", ok}, {"MULTI", ok}, {"GET lock:a", queued}, {"EXEC", "*1\r\n" + bulk("you")}}, "", "you"},
	{"without a watch", []exchange{{"MULTI", ok}, {"SET lock:a you XX", queued}, {"PEXPIRE lock:a 1000", queued},
		{"EXEC", "*2\r\n+OK\r\n:1\r\n"}}, "", "you"},
	{"the lock command first", []exchange{{"MULTI", ok}, {"GET lock:a", queued}, {"SET a 1", otherSetError},
		{"EXEC", execAbort}}, "", "me"},
	{"the lock command last", []exchange{{"MULTI", ok}, {"SET a 1", queued}, {"DEL lock:a", lateDelError},
		{"SET a 2", queued}, {"EXEC", execAbort}}, "", "me"},
	{"an error first", []exchange{{"MULTI", ok}, {"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
		{"DEL lock:a", lateDelError}, {"EXEC", execAbort}}, "", "me"},
	{"only others, a lock key watched", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"SET a 1", otherSetError},
		{"DEL lock:a", queued}, {"EXEC", execAbort}, {"SET a 2", ok}}, "2", "me"},
	{"only others", []exchange{{"WATCH a", ok}, {"MULTI", ok}, {"SET a 1", queued}, {"EXEC", "*1\r\n+OK\r\n"},
		{"DEL lock:a", ":1\r\n"}}, "1", ""},
	{"another key watched", []exchange{{"WATCH a", ok}, {"MULTI", ok}, {"DEL lock:a", lateDelError}, {"EXEC", execAbort},
		{"MULTI", ok}, {"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"another key watched and unwatched", []exchange{{"WATCH a", ok}, {"UNWATCH", ok}, {"MULTI", ok},
		{"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"keys of both kinds watched", []exchange{{"WATCH lock:a a",
		"-ERR 'watch' mixes lock keys and other keys: 'lock:a' is on the lock masters, 'a' on the upstream; send two commands\r\n"}, {"MULTI", ok}, {"SET a 1", queued}, {"EXEC", "*1\r\n+OK\r\n"}}, "1", "me"},
	{"a lock key, then another watched", []exchange{{"WATCH lock:a", ok}, {"WATCH a", mixedWatchError}, {"MULTI", ok},
		{"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"another, then a lock key watched", []exchange{{"WATCH a", ok}, {"WATCH lock:a", mixedWatchError}, {"MULTI", ok},
		{"SET a 1", queued}, {"EXEC", "*1\r\n+OK\r\n"}, {"WATCH lock:a", ok}, {"UNWATCH", ok}}, "1", "me"},
	{"nested", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"MULTI", nestedMulti}, {"WATCH lock:a", watchInMulti},
		{"WATCH a", watchInMulti}, {"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"nested in the upstream's", []exchange{{"MULTI", ok}, {"MULTI", nestedMulti}, {"WATCH a", watchInMulti},
		{"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}}, "", ""},
	{"a lock key watched in the upstream's", []exchange{{"MULTI", ok}, {"WATCH lock:a", watchInMulti}, {"SET a 1", queued},
		{"EXEC", "*1\r\n+OK\r\n"}}, "1", "me"},
	{"without MULTI", []exchange{{"WATCH lock:a", ok}, {"EXEC", "-ERR EXEC without MULTI\r\n"},
		{"DISCARD", "-ERR DISCARD without MULTI\r\n"}, {"SET lock:a you", ok}, {"MULTI", ok}, {"DEL lock:a", queued},
		{"EXEC", "*-1\r\n"}}, "", "you"},
	{"the proxy's commands", []exchange{{"MULTI", ok}, {"GET lock:a", queued},
		{"LOCK lock:a x PX 1000", notInMulti("LOCK")}, {"UNLOCK lock:a me", notInMulti("UNLOCK")},
		{"PROXY INFO", notInMulti("PROXY")}, {"EXEC", execAbort}}, "", "me"},
	{"the proxy's commands in the upstream's", []exchange{{"MULTI", ok}, {"LOCK lock:a x PX 1000", notInMulti("LOCK")},
		{"EXEC", execAbort}}, "", "me"},
	{"the proxy's command, then a lock key", []exchange{{"MULTI", ok}, {"UNLOCK lock:a me", notInMulti("UNLOCK")},
		{"SET lock:a 1", lateSetError}, {"EXEC", execAbort}}, "", "me"},
	{"its command with a syntax error, then a lock key", []exchange{{"MULTI", ok},
		{"LOCK lock:a x", notInMulti("LOCK")}, {"SET lock:a 1", lateSetError}, {"EXEC", execAbort}}, "", "me"},
	{"WATCH without a key, then a lock key", []exchange{{"MULTI", ok},
		{"WATCH", "-ERR wrong number of arguments for 'watch' command\r\n"}, {"SET lock:a 1", lateSetError},
		{"EXEC", execAbort}}, "", "me"},
	{"what has no keys", []exchange{{"MULTI", ok}, {"GET lock:a", queued},
		{"ECHO x", "-ERR 'ECHO' cannot be part of a transaction on lock keys: it is not a command on lock keys; send it before MULTI or after EXEC\r\n"},
		{"EXEC", execAbort}, {"PING", "+PONG\r\n"}}, "", "me"},
	{"of the connection", []exchange{
		{"MULTI", ok}, {"GET lock:a", queued}, {"PING", queued}, {"PING x", queued}, {"SELECT 0", queued},
		{"SELECT x", queued}, {"UNWATCH", queued},
		{"EXEC", "*6\r\n" + bulk("me") + "+PONG\r\n" +
			bulk("x") + ok + "-ERR value is not an integer or out of range\r\n" + ok},
	}, "", "me"},
	{"of another database", []exchange{
		{"MULTI", ok}, {"GET lock:a", queued}, {"SELECT 1",
			"-ERR SELECT of database 1 cannot be part of this transaction: its lock keys are in database 0; send it before MULTI or after EXEC\r\n"},
		{"EXEC", execAbort},
	}, "", "me"},
	{"what cannot be done", []exchange{{"MULTI", ok}, {"XADD lock:a * f x",
		"-ERR 'xadd' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key\r\n"}, {"GET lock:a", queued}, {"EXEC", execAbort}}, "", "me"},
	{"an error while it runs", []exchange{{"MULTI", ok}, {"INCR lock:a", queued}, {"SET lock:a you", queued},
		{"EXEC", "*2\r\n-ERR value is not an integer or out of range\r\n+OK\r\n"}}, "", "you"},
	{"a wrong number of words", []exchange{{"MULTI", ok}, {"GET lock:a", queued},
		{"GET lock:a x", "-ERR wrong number of arguments for 'get' command\r\n"}, {"EXEC", execAbort}}, "", "me"},
	{"EXEC with a word", []exchange{{"MULTI", ok}, {"DEL lock:a", queued},
		{"EXEC x", "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n"},
		{"EXEC", "-ERR EXEC without MULTI\r\n"}}, "", "me"},
	{"reset", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"DEL lock:a", queued}, {"RESET", "+RESET\r\n"},
		{"EXEC", "-ERR EXEC without MULTI\r\n"}, {"SET lock:a you", ok}, {"MULTI", ok}, {"GET lock:a", queued},
		{"EXEC", "*1\r\n" + bulk("you")}}, "", "you"},
	{"quit", []exchange{{"WATCH lock:a", ok}, {"MULTI", ok}, {"DEL lock:a", queued}, {"QUIT", ok}}, "", "me"},
	{"in another database", []exchange{{"SELECT 2", ok}, {"MULTI", ok}, {"SET lock:a two", queued},
		{"SELECT 0",
			"-ERR SELECT of database 0 cannot be part of this transaction: its lock keys are in database 2; send it before MULTI or after EXEC\r\n"},
		{"DISCARD", ok}, {"MULTI", ok}, {"SET lock:a two", queued}, {"EXEC", "*1\r\n+OK\r\n"}, {"SELECT 0", ok},
		{"GET lock:a", bulk("me")}}, "", "me"},
	{"twice", []exchange{{"MULTI", ok}, {"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"}, {"MULTI", ok},
		{"SET a 1", queued}, {"EXEC", "*1\r\n+OK\r\n"}, {"MULTI", ok}, {"SETNX lock:a x", queued},
		{"EXEC", "*1\r\n:1\r\n"}}, "1", "x"},
	{"its keys are those of the upstream's next", []exchange{{"MULTI", ok}, {"DEL lock:a", queued}, {"DISCARD", ok},
		{"SET a 1", ok}, {"GET a", bulk("1")}}, "1", "me"},
}

// TestTransactionsOnLockKeys checks that the proxy handles transactions on lock keys, and the
// upstream all other transactions. The transactions are sent in bursts, and command by command.
func TestTransactionsOnLockKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	direct := dial(t, server.Addr())
	for _, c := range lockTransactions {
		for _, burst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/burst=%v", c.name, burst), func(t *testing.T) {
				p := r.connect()
				for _, line := range []string{"SELECT 2", "DEL lock:a", "SELECT 0", "SET lock:a me", "DEL a"} {
					p.ask(line)
				}
				if burst {
					p.runExchanges(c.script)
				} else {
					for _, e := range c.script {
						p.check(e.sent, e.want)
					}
				}
				if got := r.locks.holder(0, "lock:a"); got != c.wantLockValue {
					t.Errorf("lock:a holds %q, want %q", got, c.wantLockValue)
				}
				want := bulk(c.wantUpstreamValue)
				if c.wantUpstreamValue == "" {
					want = "$-1\r\n"
				}
				direct.check("GET a", want)
				direct.check("KEYS lock:*", "*0\r\n")
			})
		}
	}
}

// TestLateLockCommandWithoutReplies checks that a client without replies does not get the error for
// a lock command after other commands in a transaction. Redis queues a CLIENT REPLY in a
// transaction, so the test has to turn the replies off.
func TestLateLockCommandWithoutReplies(t *testing.T) {
	for _, late := range []string{"DEL lock:a", "LOCK lock:a x PX 1000"} {
		r, server := startWithLockKeys(t)
		p := r.connect()
		p.runExchanges([]exchange{{"MULTI", ok}, {"SET a 1", queued}})
		r.server.DisableReplies()
		p.runExchanges([]exchange{{late, ""}, {"CLIENT REPLY ON", queued}, {"EXEC", execAbort}, {"PING", "+PONG\r\n"}})
		expectNoKeys(t, server, "a", "lock:a")
	}
}

// TestTransactionOnLockKeysInRESP3 checks that an EXEC that fails returns RESP3's null.
func TestTransactionOnLockKeysInRESP3(t *testing.T) {
	r, _ := startWithLockKeys(t)
	p := r.connect()
	p.ask("HELLO 3")
	p.runExchanges([]exchange{{"WATCH lock:a", ok}, {"SET lock:a x", ok}, {"MULTI", ok}, {"GET lock:a", queued},
		{"EXEC", "_\r\n"},
		{"MULTI", ok}, {"GET lock:b", queued}, {"EXEC", "*1\r\n_\r\n"}})
}

// TestClientLeavesWithinATransactionOnLockKeys checks that the transaction of a client that leaves
// within it has no effect, and that the session ends.
func TestClientLeavesWithinATransactionOnLockKeys(t *testing.T) {
	r, _ := startWithLockKeys(t)
	p := r.connect()
	p.runExchanges([]exchange{{"SET lock:a me", ok}, {"WATCH lock:a", ok}, {"MULTI", ok}, {"DEL lock:a", queued}})
	p.conn.Close()
	eventually(t, "the end of the client", func() bool { return r.server.Clients() == 0 })
	r.connect().check("GET lock:a", bulk("me"))
}

// TestLongCommandInATransactionOnLockKeys checks that a long command on a lock key makes a
// transaction fail, and that a protocol error ends the connection.
func TestLongCommandInATransactionOnLockKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	mega := strings.Repeat("v", 1<<20)
	tooLong := "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"
	for _, first := range []string{"GET lock:a", "SET a 1"} {
		p := r.connect()
		p.send(lines("MULTI", first) + array("SET", "lock:a", mega) + cmd("EXEC") + cmd("PING"))
		p.expect(ok + queued + tooLong + execAbort + "+PONG\r\n")
	}
	p := r.connect()
	p.send(lines("MULTI", "SET lock:a x") + "*2\r\n$x\r\n")
	p.expectAll(ok + queued + "-ERR Protocol error: invalid bulk length\r\n")
	expectNoKeys(t, server, "lock:a", "a")
	r.connect().check("GET lock:a", "$-1\r\n")
}

// TestLockKeysWithoutTheUpstream checks that clients can take and release locks in every way if the
// upstream required no login and is down. The proxy refuses commands on other keys, and names the
// reason.
func TestLockKeysWithoutTheUpstream(t *testing.T) {
	r, server := startWithLockKeys(t)
	addr := server.Addr()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	down := "-ERR upstream " + addr + ": connection refused\r\n"
	r.connect().runExchanges([]exchange{
		{"SET lock:a me NX PX 1000", ok}, {"GET lock:a", bulk("me")}, {"SET a 1", down},
		{"WATCH lock:a", ok}, {"GET lock:a", bulk("me")}, {"MULTI", ok}, {"PEXPIRE lock:a 2000", queued},
		{"EXEC", "*1\r\n:1\r\n"},
		{"WATCH lock:a", ok}, {"UNWATCH", ok}, {"WATCH a", down},
		{"MULTI", ok}, {"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"},
		{"MULTI", ok}, {"SET a 1", down}, {"PING", down}, {"EXEC", execAbort}, {"EXEC", down}, {"SET lock:a x", ok},
		{"RESET", down}, {"GET lock:a", bulk("x")},
	})
}

// TestUpstreamDiesWithinATransaction checks that a client with a transaction at the upstream is
// disconnected if the upstream dies. A transaction on lock keys still succeeds.
func TestUpstreamDiesWithinATransaction(t *testing.T) {
	r, server := startWithLockKeys(t)
	proxyTx, upstreamTx := r.connect(), r.connect()
	proxyTx.runExchanges([]exchange{{"SET lock:a me", ok}, {"WATCH lock:a", ok}, {"MULTI", ok}, {"DEL lock:a", queued}})
	upstreamTx.runExchanges([]exchange{{"MULTI", ok}})
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	upstreamTx.send(cmd("DEL lock:a"))
	upstreamTx.expectAll("")
	proxyTx.check("EXEC", "*1\r\n:1\r\n") // this transaction never needed the upstream
}

// TestTransactionsAsOnOneRedis checks that the proxy answers transactions on lock keys alone as one
// Redis would, in any order of commands. The proxy refuses a transaction that would change several
// lock keys.
func TestTransactionsAsOnOneRedis(t *testing.T) {
	r, server := startWithLockKeys(t)
	commands := []string{"MULTI", "MULTI", "EXEC", "EXEC", "DISCARD", "WATCH lock:a", "WATCH lock:a lock:b", "UNWATCH",
		"MULTI x", "EXEC x", "DISCARD x", "WATCH",
		"SET lock:a 1", "SET lock:b x", "GET lock:a", "DEL lock:a", "INCR lock:a", "INCR lock:b", "SETNX lock:a 5",
		"GETSET lock:b y", "SET lock:a 7 NX", "MGET lock:a lock:b",
		"GET lock:a x", "SET lock:a 1 foo", "EXISTS lock:a lock:b", "UNWATCH x", "RESET"}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		direct, proxied := dial(t, server.Addr()), r.connect()
		direct.check("FLUSHALL", ok)
		r.connect().ask("DEL lock:a lock:b")
		inMulti, watching := false, false
		for i := range 40 {
			line := commands[random.IntN(len(commands))]
			// On the masters, a key that is changed and changed back counts as unchanged. So this
			// test only gives a watched key new values.
			if watching && !inMulti && strings.Contains(line, "lock:") && !strings.HasPrefix(line, "WATCH") {
				line = fmt.Sprintf("SET lock:a new%d", i)
			}
			// TestTransactionsOnLockKeys covers transactions of the upstream.
			if inMulti && (!strings.Contains(line, "lock:") || strings.HasPrefix(line, "WATCH")) && line != "EXEC" &&
				line != "DISCARD" {
				continue
			}
			ends := line == "EXEC" || line == "DISCARD"
			watching = strings.HasPrefix(line, "WATCH lock:") ||
				watching && line != "UNWATCH" && line != "RESET" && !(ends && inMulti)
			inMulti = line == "MULTI" || inMulti && !ends
			got := proxied.ask(line)
			if line == "EXEC" && strings.Contains(got, "cannot be changed together") {
				direct.check("DISCARD", ok)
				continue
			}
			if want := direct.ask(line); got != want {
				t.Fatalf("seed %d: %s: %q, in Redis %q", seed, line, got, want)
			}
		}
		direct.conn.Close()
		proxied.conn.Close()
	}
	dial(t, server.Addr()).check("KEYS other", "*0\r\n")
}
