//go:build integration

package masters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLocksAfterAChange checks that locks outlive changes of the masters. Clients hold, extend
// and release them after a master was added, a master was replaced, and a master was removed. This
// holds at the proxy that changed the masters and at the proxy that followed.
func TestLocksAfterAChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	clientA, clientB := kit.Connect(t, r.proxies[0]), kit.Connect(t, r.proxies[1])
	kit.WantGrant(t, clientA, "LOCK", "a", "t", "PX", "600000")
	kit.WantGrant(t, clientB, "LOCK", "b", "t", "PX", "600000")
	kit.WantGrant(t, clientA, "LOCK", "c", "t", "PX", "600000")
	for _, masters := range [][]int{{0, 1, 2, 3}, {0, 1, 4, 3}, {1, 4, 3}} {
		r.change(masters...)
		for _, key := range []string{"a", "b", "c"} {
			kit.Want(t, clientA, nil, "LOCK", key, "u", "PX", "1000")
			kit.Want(t, clientB, nil, "LOCK", key, "u", "PX", "1000")
		}
		kit.WantGrant(t, clientB, "EXTEND", "a", "t", "PX", "600000")
		kit.WantGrant(t, clientA, "EXTEND", "b", "t", "PX", "600000")
	}
	kit.Want(t, clientB, int64(1), "UNLOCK", "a", "t")
	kit.Want(t, clientA, int64(1), "UNLOCK", "b", "t")
	kit.Want(t, clientA, int64(1), "UNLOCK", "c", "t")
	kit.WantGrant(t, clientB, "LOCK", "a", "u", "PX", "1000")
}

// TestCheckAfterAChange runs check with the former list after a change of the masters. The command
// reports different settings, since a proxy with that list gets no votes. init --new-settings does
// not make the list valid.
func TestCheckAfterAChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	check := func(command []string, masters ...int) string {
		command = append(command, "--lock-keys", "k*")
		for _, i := range masters {
			command = append(command, "--master", r.url(i))
		}
		output, _ := kit.ProxyCommand(t, command...).CombinedOutput()
		return string(output)
	}
	want := func(output string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(output, text) {
				t.Errorf("got %s\nwant %q in it", output, text)
			}
		}
	}
	r.change(0, 1, 3)
	want(check([]string{"check"}, 0, 1, 3), "3 of 3 masters vote")
	want(check([]string{"check"}, 0, 1, 2), "other settings: your settings differ from those of the running proxies: "+
		"masters: the list was changed")
	want(check([]string{"init", "--new-settings"}, 0, 1, 2), "refused: 2 proxies with different settings are running")
	want(check([]string{"init", "--new-settings", "--force"}, 0, 1, 2), "masters: the list was changed", "use the same on all proxies")
	r.wantVoting(0, 1, 3)
	kit.WantGrant(t, kit.Connect(t, r.proxies[1]), "LOCK", "a", "t", "PX", "1000")
}

// TestWaitersDuringAChange lets clients wait for a lock during changes of the masters. Two of
// three masters are replaced, one after the other, a master is added, and the configuration is
// reloaded. The clients get the lock when it is released. The same holds for clients that wait for
// an element. With tags, a ballot takes the lock.
func TestWaitersDuringAChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, tags := range []bool{false, true} {
		t.Run(fmt.Sprint("tags ", tags), func(t *testing.T) {
			t.Parallel()
			checkWaiters(t, startServers(t, &rig{t: t, usesTags: tags}, 2, 3, 5))
		})
	}
}

func checkWaiters(t *testing.T, r *rig) {
	const waitersPerProxy = 5
	lock, list := "a", "k"
	if r.usesTags {
		lock, list = "a:{t}", "k:{u}"
	}
	holder := kit.Connect(t, r.proxies[0])
	kit.WantGrant(t, holder, "LOCK", lock, "t", "PX", "600000")
	replies := make(chan any, 2*waitersPerProxy)
	var poppers []*redistest.Client
	for _, proxy := range r.proxies {
		for range waitersPerProxy {
			waiter := kit.Connect(t, proxy)
			waiter.SetTimeout(10 * time.Minute) // the wait lasts for all changes
			go func() {
				reply, err := waiter.Do("LOCK", lock, "u", "PX", "600000", "BLOCK", "0")
				if _, granted := reply.(int64); err == nil && granted {
					reply, err = waiter.Do("UNLOCK", lock, "u")
				}
				if err != nil {
					reply = err
				}
				replies <- reply
			}()
		}
		client := kit.Connect(t, proxy)
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", list, "0")))
		poppers = append(poppers, client)
		kit.WantBlocked(t, proxy, waitersPerProxy+1)
	}
	for _, masters := range [][]int{{0, 1, 3}, {0, 4, 3}, {0, 4, 3, 1}} {
		r.change(masters...)
		r.reload(1)
	}
	// In this time, the proxies close their connections to the earlier masters.
	time.Sleep(11 * time.Second)
	for _, client := range poppers {
		kit.Do(t, holder, "RPUSH", list, "e")
		defer func() {
			if reply, err := client.Receive(); err != nil || fmt.Sprint(reply) != "["+list+" e]" {
				t.Errorf("a client that waited for an element got %v, %v", reply, err)
			}
		}()
	}
	kit.Want(t, holder, int64(1), "UNLOCK", lock, "t")
	for range 2 * waitersPerProxy {
		select {
		case reply := <-replies:
			if reply != any(int64(1)) {
				t.Errorf("a client that waited got %v", reply)
			}
		case <-time.After(kit.WaitLimit):
			t.Fatal("a waiter is not told that the lock is free")
		}
	}
}
