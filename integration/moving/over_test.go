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

// during begins a move. done waits until the move has ended, and fails the test if it has failed.
func (r *rig) during(proxy int, flags ...string) (done func()) {
	r.t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := r.move(proxy, flags...)
		ended <- err
	}()
	return func() { kit.Must(r.t, <-ended) }
}

// TestBlockedOverTheMove: a client that waits on the masters for an element of a lock key gets it
// after the move. A client that waits at the upstream gets the reply of a timeout. A LOCK during a
// move to the masters waits, and is granted by the masters. A LOCK that waits on the masters when
// the locks move to the upstream gets an error.
func TestBlockedOverTheMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	one, other := r.pair()
	const refused = "ERR LOCK" + needsMastersError
	for _, flags := range [][]string{nil, {toUpstream}, nil} {
		kit.Want(t, other, "OK", "SET", "lock:b", "me", "PX", "60000")
		kit.Must(t, one.Send(redistest.AppendCommand(nil, "BLPOP", "lock:list", "0")))
		got := make(chan string, 1)
		waits := kit.Connect(t, r.proxies[0])
		go func() {
			for {
				reply, err := waits.Do("LOCK", "lock:b", "w", "PX", "60000", "BLOCK", "50000")
				if text := kit.Text(reply); err != nil || len(flags) > 0 || !strings.HasPrefix(text, refused) {
					got <- fmt.Sprint(text, err)
					return
				}
				time.Sleep(10 * time.Millisecond) // the pace of a client
			}
		}()
		time.Sleep(100 * time.Millisecond) // by now the clients wait; if not, their replies are the same
		r.mustMove(1, flags...)
		kit.Want(t, other, int64(1), "RPUSH", "lock:list", "x")
		kit.Want(t, other, int64(1), "DEL", "lock:b")
		want := "[lock:list x]"
		if len(flags) == 0 {
			want = kit.Text(nil)
			kit.Want(t, other, "x", "LPOP", "lock:list")
		}
		if reply, err := one.Receive(); err != nil || kit.Text(reply) != want {
			t.Errorf("after %v BLPOP: %v, %v", flags, reply, err)
		}
		if reply := <-got; len(flags) > 0 {
			if !strings.HasPrefix(reply, refused) {
				t.Errorf("LOCK BLOCK on the way back: %s", reply)
			}
		} else {
			if strings.Trim(reply, "0123456789") != "<nil>" || reply < "1" {
				t.Errorf("LOCK BLOCK: %s", reply)
			}
			kit.Want(t, other, int64(1), "UNLOCK", "lock:b", "w")
		}
		kit.Want(t, other, int64(0), "LLEN", "lock:list")
	}
}

// TestPipelinesOverTheMove: pipelined transactions are executed once each, in order.
func TestPipelinesOverTheMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	one, other := r.pair()
	for round, flags := range [][]string{nil, {toUpstream}} {
		done := r.during(1, flags...)
		n := 0
		key := "lock:p:" + fmt.Sprint(round)
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); n++ {
			var raw []byte
			for _, words := range [][]string{{"MULTI"}, {"INCR", key}, {"PEXPIRE", key, "60000"}, {"EXEC"}, {"GET", key}} {
				raw = redistest.AppendCommand(raw, words...)
			}
			kit.Must(t, one.Send(raw))
			var all []string
			for range 5 {
				reply, err := one.Receive()
				kit.Must(t, err)
				all = append(all, kit.Text(reply))
			}
			if want := []string{"OK", "QUEUED", "QUEUED", fmt.Sprintf("[%d 1]", n+1),
				fmt.Sprint(n + 1)}; !slices.Equal(all, want) {
				t.Fatalf("transaction %d: %q, want %q", n, all, want)
			}
		}
		done()
		t.Logf("%d transactions", n)
		kit.Want(t, other, fmt.Sprint(n), "GET", key)
	}
}
