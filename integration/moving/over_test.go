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

// TestBlockedClientsDuringMove: a client that waits on the masters for an element of a lock key
// gets it after the move. A client that waits at the upstream gets the reply of a timeout. A LOCK
// during a move to the masters waits, and is granted by the masters. A LOCK that waits on the
// masters when the locks move to the upstream gets an error.
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
				time.Sleep(10 * time.Millisecond) // the pace of a client
			}
		}()
		time.Sleep(100 * time.Millisecond) // by now the clients wait; if not, their replies are the same
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

// TestPipelinesDuringMove: pipelined transactions are executed once each, in order.
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
