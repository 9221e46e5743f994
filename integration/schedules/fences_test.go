//go:build integration

package schedules

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// wantFence takes a lock with a fence, and returns the fence.
func wantFence(t *testing.T, client *redistest.Client, key, token string) int64 {
	t.Helper()
	fields, _ := kit.Do(t, client, "LOCK", key, token, "PX", "10000", "FENCE").([]any)
	if len(fields) != 6 || fields[3] != any(token) {
		t.Fatalf("LOCK %s FENCE: %v", key, fields)
	}
	return fields[5].(int64)
}

// fenceCounter returns the fence counter of a key on a master, or 0 if there is none.
func (f *fleet) fenceCounter(t *testing.T, key string, master int) int64 {
	t.Helper()
	text, _ := readKeys(t, f.masters[master], "redlock-proxy:fence:"+key)[0].value.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// TestLateFence delays the command of a LOCK to C. Before the command arrives, the lock is
// released, and another proxy grants the lock with a higher fence. C keeps the higher fence.
func TestLateFence(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	firstProxy, secondProxy := f.startProxy(t), f.startProxy(t)
	first, second := connect(t, firstProxy), connect(t, secondProxy)
	lateLock := firstProxy.links[C].HoldCommands(faultlink.Containing("lock:k"))
	lower := wantFence(t, first, "lock:k", "one")
	kit.Want(t, first, int64(1), "UNLOCK", "lock:k", "one")
	higher := wantFence(t, second, "lock:k", "two")
	f.wantHolders(t, "lock:k", "two", A, B, C)
	lateLock.Release()
	time.Sleep(200 * time.Millisecond) // a wrong result would appear by then
	for i := range f.masters {
		if got := f.fenceCounter(t, "lock:k", i); got != higher || higher <= lower {
			t.Errorf("%s: %d, want %d, after %d", letters([]int{i}), got, higher, lower)
		}
	}
	kit.Want(t, first, higher, "FENCE", "lock:k")
}

// TestFenceAfterARemoval grants a lock through one proxy, and releases it by ballot through another
// proxy. The next LOCK, also by ballot, comes before the removal is complete. Its fence is still
// higher. The last fence is on a majority of the masters.
func TestFenceAfterARemoval(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	first, second := connect(t, f.startProxy(t)), connect(t, f.startProxy(t))
	last := int64(0)
	for i := range 10 {
		holder, nonHolder := first, second
		if i%2 == 1 {
			holder, nonHolder = second, first
		}
		token := "t" + strconv.Itoa(i)
		fence := wantFence(t, holder, "lock:k", token)
		if fence <= last {
			t.Errorf("fence %d after %d", fence, last)
		}
		last = fence
		kit.Want(t, nonHolder, last, "FENCE", "lock:k")
		kit.Want(t, nonHolder, int64(1), "UNLOCK", "lock:k", token)
	}
	count := 0
	for i := range f.masters {
		if f.fenceCounter(t, "lock:k", i) == last {
			count++
		}
	}
	if count < 3 {
		t.Errorf("the last fence is on %d masters", count)
	}
}

// TestEqualProposals covers two proxies that know the same fence, and whose clocks give the same
// next fence. Both proxies propose this fence, and only one client is granted it.
func TestEqualProposals(t *testing.T) {
	t.Parallel()
	const knownFence = int64(1) << 52
	f := startFleet(t, 3)
	first, second := connect(t, f.startProxy(t)), connect(t, f.startProxy(t))
	for _, master := range f.masters {
		mustSend(t, master, "SET", "redlock-proxy:fence:lock:k", strconv.FormatInt(knownFence, 10))
	}
	fences := map[int64]bool{}
	for range 20 {
		replies := []<-chan any{
			sendAsync(first, "LOCK", "lock:k", "one", "PX", "10000", "FENCE", "BLOCK", "5000"),
			sendAsync(second, "LOCK", "lock:k", "two", "PX", "10000", "FENCE", "BLOCK", "5000"),
		}
		tokens := []string{"one", "two"}
		for range 2 {
			var reply any
			winner := 0
			select {
			case reply = <-replies[0]:
			case reply = <-replies[1]:
				winner = 1
			}
			replies[winner] = nil
			fields, _ := reply.([]any)
			if len(fields) != 6 {
				t.Fatalf("got %v", reply)
			}
			fence := fields[5].(int64)
			if fence <= knownFence {
				t.Errorf("fence %d, %d before it", fence, len(fences))
			}
			for earlier := range fences {
				if earlier >= fence {
					t.Errorf("fence %d after %d", fence, earlier)
				}
			}
			fences[fence] = true
			kit.Want(t, []*redistest.Client{first, second}[winner], int64(1), "UNLOCK", "lock:k", tokens[winner])
		}
	}
}

// TestFenceInOneRoundTrip checks that, without faults, a LOCK with a fence needs one script on each
// master, like an UNLOCK. A LOCK without a fence needs no script.
func TestFenceInOneRoundTrip(t *testing.T) {
	t.Parallel()
	const pairs = 300
	f := startFleet(t, 3)
	clients := []*redistest.Client{connect(t, f.startProxy(t)), connect(t, f.startProxy(t))}
	for _, c := range []struct {
		lock    []string
		scripts int64
	}{
		{[]string{"LOCK", "lock:k", "t", "PX", "10000", "FENCE"}, 2 * pairs},
		{[]string{"LOCK", "lock:k", "t", "PX", "10000"}, pairs},
	} {
		for _, client := range clients { // so that the masters know the scripts
			kit.Do(t, client, c.lock...)
			kit.Want(t, client, int64(1), "UNLOCK", "lock:k", "t")
		}
		mustSend(t, f.masters[A], "CONFIG", "RESETSTAT")
		start := time.Now()
		for i := range pairs {
			client := clients[i%2]
			if reply := kit.Do(t, client, c.lock...); reply == nil {
				t.Fatal("the lock is held")
			}
			kit.Want(t, client, int64(1), "UNLOCK", "lock:k", "t")
		}
		// guardScripts is an upper bound for the scripts that the guards of both proxies run.
		guardScripts := 20 * int64(time.Since(start)/time.Second+1)
		scripts := f.commandCalls(t, A, "evalsha")
		t.Logf("%v: %d scripts for %d pairs", c.lock, scripts, pairs)
		if scripts > c.scripts+pairs/5+guardScripts {
			t.Errorf("%v: %d scripts, want about %d", c.lock, scripts, c.scripts)
		}
	}
}

// commandCalls returns the number of times that a master ran a command since its counts were reset.
func (f *fleet) commandCalls(t *testing.T, master int, command string) int64 {
	t.Helper()
	stats, err := kit.QueryDatabase(f.masters[master], "0", "INFO", "commandstats")
	kit.Must(t, err)
	_, rest, _ := strings.Cut(stats.(string), "cmdstat_"+command+":calls=")
	text, _, _ := strings.Cut(rest, ",")
	return int64(kit.ParseNumber(t, text))
}
