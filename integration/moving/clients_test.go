//go:build integration

package moving

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startMove begins a move. wait waits until the move has ended, and fails the test if it has
// failed.
func (r *rig) startMove(proxy int, flags ...string) (wait func()) {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := r.move(proxy, flags...)
		ended <- err
	}()
	return func() { kit.Must(r.t, <-ended) }
}

// TestBlockedClientsDuringMove checks that a client that waits on the masters for an element of a
// lock key gets it after the move. A client that waits at the upstream gets the reply of a timeout.
// A LOCK during a move to the masters waits, and is granted by the masters. A LOCK that waits on
// the masters when the locks move to the upstream gets an error.
func TestBlockedClientsDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	const refusal = "ERR LOCK" + needsMastersError
	for _, flags := range [][]string{nil, {backFlag}, nil} {
		kit.Want(t, clientB, "OK", "SET", "lock:b", "me", "PX", "60000")
		kit.Must(t, clientA.Send(redistest.AppendCommand(nil, "BLPOP", "lock:list", "0")))
		waiterReply := make(chan string, 1)
		waiter := kit.Connect(t, r.proxies[0])
		go func() {
			for {
				reply, err := waiter.Do("LOCK", "lock:b", "w", "PX", "60000", "BLOCK", "50000")
				if text := kit.ReplyText(reply); err != nil || len(flags) > 0 || !strings.HasPrefix(text, refusal) {
					waiterReply <- fmt.Sprint(text, err)
					return
				}
				time.Sleep(10 * time.Millisecond) // sets the pace of a client
			}
		}()
		// After this time the clients wait; if not, their replies are the same.
		time.Sleep(100 * time.Millisecond)
		r.mustMove(1, flags...)
		kit.Want(t, clientB, int64(1), "RPUSH", "lock:list", "x")
		kit.Want(t, clientB, int64(1), "DEL", "lock:b")
		want := "[lock:list x]"
		if len(flags) == 0 {
			want = kit.ReplyText(nil)
			kit.Want(t, clientB, "x", "LPOP", "lock:list")
		}
		if reply, err := clientA.Receive(); err != nil || kit.ReplyText(reply) != want {
			t.Errorf("after %v BLPOP: %v, %v", flags, reply, err)
		}
		if reply := <-waiterReply; len(flags) > 0 {
			if !strings.HasPrefix(reply, refusal) {
				t.Errorf("LOCK BLOCK on the way back: %s", reply)
			}
		} else {
			if strings.Trim(reply, "0123456789") != "<nil>" || reply < "1" {
				t.Errorf("LOCK BLOCK: %s", reply)
			}
			kit.Want(t, clientB, int64(1), "UNLOCK", "lock:b", "w")
		}
		kit.Want(t, clientB, int64(0), "LLEN", "lock:list")
	}
}

// TestOrdinaryWaitDuringMove checks that a client that waits for an element of an ordinary key
// keeps its connection in a move. The client took locks before the wait. The client gets the
// element, and the move does not wait for the client.
func TestOrdinaryWaitDuringMove(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	waiter, pusher := r.clients()
	for _, flags := range [][]string{nil, {backFlag}, nil} {
		kit.Want(t, waiter, "OK", "SET", "lock:w", "me", "NX", "PX", "60000")
		kit.Want(t, waiter, int64(1), "DEL", "lock:w")
		kit.Must(t, waiter.Send(redistest.AppendCommand(nil, "BLPOP", "jobs", "0")))
		kit.Eventually(t, func() error {
			info, err := kit.QueryDatabase(r.upstream, "0", "INFO", "clients")
			if err == nil && !strings.Contains(fmt.Sprint(info), "blocked_clients:1\r\n") {
				err = fmt.Errorf("nothing waits: %v", info)
			}
			return err
		})
		r.mustMove(1, flags...)
		kit.Want(t, pusher, int64(1), "RPUSH", "jobs", "x")
		if reply, err := waiter.Receive(); err != nil || kit.ReplyText(reply) != "[jobs x]" {
			t.Fatalf("after %v BLPOP: %v, %v", flags, reply, err)
		}
	}
}

// TestWatchDuringMoveAndBack checks that EXEC returns nil to a client that watches a lock key while
// the locks move to the masters and back. The client gets nil even if it sent nothing meanwhile,
// but not after an aborted move.
func TestWatchDuringMoveAndBack(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	watcher, other := r.clients()
	for _, inMulti := range []bool{false, true} {
		kit.Want(t, watcher, "OK", "WATCH", "lock:w")
		if inMulti {
			kit.Want(t, watcher, "OK", "MULTI")
		}
		r.mustMove(1)
		kit.Want(t, other, "OK", "SET", "lock:w", "other", "NX", "PX", "60000")
		kit.Want(t, other, int64(1), "DEL", "lock:w")
		r.mustMove(1, backFlag)
		if !inMulti {
			kit.Want(t, watcher, "OK", "MULTI")
		}
		kit.Want(t, watcher, "QUEUED", "SET", "lock:w", "w", "PX", "60000")
		kit.Want(t, watcher, nil, "EXEC")
		kit.Want(t, watcher, "OK", "WATCH", "lock:w")
		// A direct client of the upstream aborts the move.
		direct, err := redistest.Dial(r.upstream.Addr(), kit.WaitLimit)
		kit.Must(t, err)
		if output, err := r.move(1); err == nil {
			t.Fatalf("the locks moved: %s", output)
		}
		kit.Must(t, direct.Close())
		kit.Want(t, watcher, "OK", "MULTI")
		kit.Want(t, watcher, "QUEUED", "SET", "lock:w", "w", "PX", "1")
		kit.WantReply(t, watcher, "EXEC", []any{"OK"})
	}
}

// TestPipelinesDuringMove checks that pipelined transactions are executed once each, in order.
func TestPipelinesDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	for round, flags := range [][]string{nil, {backFlag}} {
		wait := r.startMove(1, flags...)
		n := 0
		key := "lock:p:" + fmt.Sprint(round)
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); n++ {
			var raw []byte
			for _, words := range [][]string{{"MULTI"}, {"INCR", key}, {"PEXPIRE", key, "60000"}, {"EXEC"}, {"GET", key}} {
				raw = redistest.AppendCommand(raw, words...)
			}
			kit.Must(t, clientA.Send(raw))
			var replies []string
			for range 5 {
				reply, err := clientA.Receive()
				kit.Must(t, err)
				replies = append(replies, kit.ReplyText(reply))
			}
			if want := []string{"OK", "QUEUED", "QUEUED", fmt.Sprintf("[%d 1]", n+1),
				fmt.Sprint(n + 1)}; !slices.Equal(replies, want) {
				t.Fatalf("transaction %d: %q, want %q", n, replies, want)
			}
		}
		wait()
		t.Logf("%d transactions", n)
		kit.Want(t, clientB, fmt.Sprint(n), "GET", key)
	}
}
