//go:build integration

package masters

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLocksOutliveAChange: a lock that was granted by two of three masters is held, extended and released after one was added,
// one replaced, and one removed, through the proxy that changed them and through the one that followed.
func TestLocksOutliveAChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	one, two := kit.Connect(t, r.proxies[0]), kit.Connect(t, r.proxies[1])
	kit.WantGrant(t, one, "LOCK", "a", "t", "PX", "600000")
	kit.WantGrant(t, two, "LOCK", "b", "t", "PX", "600000")
	kit.WantGrant(t, one, "LOCK", "c", "t", "PX", "600000")
	for _, masters := range [][]int{{0, 1, 2, 3}, {0, 1, 4, 3}, {1, 4, 3}} {
		r.change(masters...)
		for _, client := range []string{"a", "b", "c"} {
			kit.Want(t, one, nil, "LOCK", client, "u", "PX", "1000")
			kit.Want(t, two, nil, "LOCK", client, "u", "PX", "1000")
		}
		kit.WantGrant(t, two, "EXTEND", "a", "t", "PX", "600000")
		kit.WantGrant(t, one, "EXTEND", "b", "t", "PX", "600000")
	}
	kit.Want(t, two, int64(1), "UNLOCK", "a", "t")
	kit.Want(t, one, int64(1), "UNLOCK", "b", "t")
	kit.Want(t, one, int64(1), "UNLOCK", "c", "t")
	kit.WantGrant(t, two, "LOCK", "a", "u", "PX", "1000")
}

// TestWaitersOutliveAChange: who waits for a lock while all masters but one are replaced, one after the other, and added to, gets it when it
// is released, without asking the masters of before, which are gone. So does who waits for an element.
func TestWaitersOutliveAChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	holder, waiter := kit.Connect(t, r.proxies[0]), kit.Connect(t, r.proxies[1])
	kit.WantGrant(t, holder, "LOCK", "a", "t", "PX", "600000")
	granted := make(chan any, 1)
	go func() {
		reply, err := waiter.Do("LOCK", "a", "u", "PX", "600000", "BLOCK", "120000")
		if err != nil {
			reply = err
		}
		granted <- reply
	}()
	popping := kit.Connect(t, r.proxies[1])
	kit.Must(t, popping.Send(redistest.AppendCommand(nil, "BLPOP", "k", "0")))
	kit.WantBlocked(t, r.proxies[1], 2)
	for _, masters := range [][]int{{0, 1, 3}, {0, 4, 3}, {0, 4, 3, 1}} {
		r.change(masters...)
	}
	time.Sleep(11 * time.Second) // the masters of before are let go
	kit.Want(t, holder, int64(1), "RPUSH", "k", "e")
	if reply, err := popping.Receive(); err != nil || fmt.Sprint(reply) != "[k e]" {
		t.Errorf("who waited for an element got %v, %v", reply, err)
	}
	kit.Want(t, holder, int64(1), "UNLOCK", "a", "t")
	select {
	case reply := <-granted:
		if ms, ok := reply.(int64); !ok || ms <= 0 {
			t.Errorf("who waited got %v", reply)
		}
	case <-time.After(kit.Patience):
		t.Error("who waits is not told that the lock is free")
	}
	kit.Want(t, holder, nil, "LOCK", "a", "v", "PX", "1000")
}
