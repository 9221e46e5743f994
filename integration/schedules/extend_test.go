//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestLateExtend delays the commands of an EXTEND with a TTL of 1 s, which gets NOQUORUM. They
// reach the masters after another proxy has extended the lock to 60 s. The lock keeps its 60 s.
func TestLateExtend(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	slowProxy, otherProxy := f.startProxy(t), f.startProxy(t)
	client := connect(t, otherProxy)
	wantGrant(t, client, "LOCK", "lock:k", "t", "PX", "10000")
	f.wantHolders(t, "lock:k", "t", f.allMasters()...)
	lateExtend := slowProxy.hold("lock:k", 0, f.allMasters()...)
	if reply := kit.Do(t, connect(t, slowProxy), "EXTEND", "lock:k", "t", "PX", "1000"); !kit.IsNoQuorum(reply) {
		t.Fatalf("EXTEND that reaches no master: %v, want NOQUORUM", reply)
	}
	wantGrant(t, client, "EXTEND", "lock:k", "t", "PX", "60000")
	lateExtend.release()
	time.Sleep(300 * time.Millisecond) // a wrong result would appear by then
	for i, master := range f.masters {
		if state := readKeys(t, master, "lock:k")[0]; state.pttl < 50*time.Second {
			t.Errorf("master %d has %v", i, state)
		}
	}
	time.Sleep(time.Second) // a wrong result would appear by then
	kit.Want(t, client, nil, "LOCK", "lock:k", "rival", "PX", "10000")
}

// granted, nilReply and noQuorum are the expected results of an EXTEND.
const (
	granted  = "granted"
	nilReply = "nil"
	noQuorum = "NOQUORUM"
)

// TestExtendNil checks that an EXTEND returns nil only if no majority of the masters can have the
// lock.
func TestExtendNil(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holders, pausedMasters []int
		want                   string
	}{
		{[]int{A, B, C}, nil, granted},
		{[]int{A, B, C}, []int{D, E}, granted},
		{[]int{A, B, C}, []int{C}, noQuorum},
		{[]int{A, B, C}, []int{C, E}, noQuorum},
		{[]int{A, B, C}, []int{A, B}, noQuorum},
		{[]int{A, B, C, D}, []int{C, D}, noQuorum},
		{[]int{A, B, C, D, E}, []int{A, B, C}, noQuorum},
		{[]int{A, B}, nil, nilReply},
		{[]int{A, B}, []int{A, B}, nilReply},
		{[]int{A, B}, []int{C}, noQuorum},
		{[]int{A}, []int{A, B}, nilReply},
		{[]int{}, []int{A, B}, nilReply},
		{[]int{}, []int{A, B, C}, noQuorum},
	} {
		t.Run(fmt.Sprintf("%s without %s", letters(c.holders), letters(c.pausedMasters)), func(t *testing.T) {
			f := startFleet(t, 5)
			p := f.startProxy(t)
			client := connect(t, p)
			wantGrant(t, client, "LOCK", "lock:k", "t", "PX", "60000")
			f.wantHolders(t, "lock:k", "t", f.allMasters()...)
			for i, master := range f.masters {
				if !contains(c.holders, i) {
					mustSend(t, master, "DEL", "lock:k")
				}
			}
			for _, i := range c.pausedMasters {
				kit.Must(t, f.masters[i].Pause())
			}
			reply := kit.Do(t, client, "EXTEND", "lock:k", "t", "PX", "60000")
			if got := classifyExtend(reply); got != c.want {
				t.Errorf("%v, want %s", reply, c.want)
			}
		})
	}
}

// classifyExtend classifies the reply to an EXTEND.
func classifyExtend(reply any) string {
	switch {
	case isGrant(reply):
		return granted
	case reply == nil:
		return nilReply
	case kit.IsNoQuorum(reply):
		return noQuorum
	default:
		return fmt.Sprint(reply)
	}
}
