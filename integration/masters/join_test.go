//go:build integration

package masters

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// hotLoad is a group of clients that change a few keys repeatedly without a pause.
type hotLoad struct {
	stopping atomic.Bool
	workers  sync.WaitGroup
	commands atomic.Int64
}

// startHotLoad starts clients that use the proxies in turn. Each client repeats one of several
// operations, on one key after the other.
func startHotLoad(t *testing.T, proxies []*harness.Proxy, clients, keys int) *hotLoad {
	t.Helper()
	l := &hotLoad{}
	for i := range clients {
		client := kit.Connect(t, proxies[i%len(proxies)])
		l.workers.Go(func() {
			for turn := 0; !l.stopping.Load(); turn++ {
				l.runTurn(client, fmt.Sprint("k:", (i+turn)%keys), fmt.Sprint(i, "-", turn), i/len(proxies)%4)
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// runTurn takes and releases a lock, with or without a TTL, by LOCK or by SET, or changes a hash.
func (l *hotLoad) runTurn(client *redistest.Client, key, token string, kind int) {
	commands := [][][]string{
		{{"HINCRBY", key + ":hash", "n", "1"}},
		{{"SET", key + ":set", token, "NX"}, {"DEL", key + ":set"}},
		{{"LOCK", key, token, "PX", "30000"}, {"UNLOCK", key, token}},
		{{"LOCK", key, token, "PX", "1000"}, {"EXTEND", key, token, "PX", "30000"}, {"UNLOCK", key, token}},
	}[kind]
	for _, words := range commands {
		reply, err := client.Do(words...)
		if _, isError := reply.(redistest.RespError); err != nil || isError || reply == nil {
			return
		}
		l.commands.Add(1)
	}
}

func (l *hotLoad) stop() {
	l.stopping.Store(true)
	l.workers.Wait()
}

// wantWork waits until the load has executed 100 more commands.
func (l *hotLoad) wantWork(t *testing.T) {
	t.Helper()
	before := l.commands.Load()
	kit.Await(t, "no command is done", func() bool { return l.commands.Load() > before+100 })
}

// TestJoinsUnderLoad lets clients change the same few keys without a pause. Meanwhile a master is
// replaced, one restarts without its data, one is added, and one is removed. Each new or restarted
// master gets its vote at all proxies during the load.
func TestJoinsUnderLoad(t *testing.T) {
	redistest.SkipShort(t)
	clients := 8
	if rounds(0, 1) > 0 {
		clients = 64
	}
	for n := range rounds(1, 1) {
		r := startRig(t, 2+n%2, 3, 5)
		client := kit.Connect(t, r.proxies[0])
		for i := range 16 {
			kit.Want(t, client, int64(1), "HSET", fmt.Sprint("k-hash:", i), "f", "v")
			kit.Want(t, client, "OK", "SET", fmt.Sprint("k-endless:", i), "v", "NX")
		}
		l := startHotLoad(t, r.proxies, clients, 16)
		l.wantWork(t)
		step := func(event string, do func()) {
			startedAt := time.Now()
			do()
			t.Logf("%s: all vote after %v", event, time.Since(startedAt).Round(time.Millisecond))
			l.wantWork(t)
		}
		step("replaced", func() { r.change(0, 1, 3) })
		step("restarted", func() {
			kit.Must(t, r.servers[1].Kill())
			kit.Must(t, r.servers[1].Restart())
			kit.Eventually(t, func() error { return r.checkMarker(1) })
			r.wantVoting(0, 1, 3)
		})
		step("added", func() { r.change(0, 1, 3, 4) })
		step("removed", func() { r.change(1, 3, 4) })
		l.stop()
		for i := range 16 {
			kit.Want(t, client, "v", "HGET", fmt.Sprint("k-hash:", i), "f")
			kit.Want(t, client, nil, "LOCK", fmt.Sprint("k-endless:", i), "t", "PX", "1000")
		}
	}
}

// checkMarker returns an error unless a restarted master was admitted again.
func (r *rig) checkMarker(server int) error {
	reply, err := kit.QueryDatabase(r.servers[server], "0", "EXISTS", "redlock-proxy:marker")
	if err == nil && reply != int64(1) {
		err = fmt.Errorf("it has no marker: %v", reply)
	}
	return err
}

// TestJoinsWithManyLocks restarts a master without its data while many locks are held. The master
// votes again, and has every lock. The proxies need little memory for the catch-up.
func TestJoinsWithManyLocks(t *testing.T) {
	redistest.SkipShort(t)
	locks := int(kit.NumberFrom(t, "REDLOCK_MASTERS_LOCKS", 10_000))
	r := startRig(t, 2, 5, 5)
	startedAt := time.Now()
	takeLocks(t, r.proxies[0], locks)
	t.Logf("%d locks taken in %v", locks, time.Since(startedAt).Round(time.Millisecond))
	memoryBefore := r.residentMemory()
	kit.Must(t, r.servers[4].Kill())
	kit.Must(t, r.servers[4].Restart())
	startedAt = time.Now()
	var maxDuration time.Duration
	client := kit.Connect(t, r.proxies[1])
	kit.AwaitWithin(t, kit.WaitLimit+time.Duration(locks)*100*time.Microsecond, func() error {
		sent := time.Now()
		if reply := kit.Do(t, client, "LOCK", "k:other", "t", "PX", "30000"); !kit.IsGranted(reply) {
			return fmt.Errorf("LOCK: %v", reply) // NOQUORUM on a busy machine
		}
		maxDuration = max(maxDuration, time.Since(sent))
		kit.Do(t, client, "UNLOCK", "k:other", "t")
		return errors.Join(r.checkMarker(4), r.checkVoting(r.proxies[0], firstN(5)), r.checkVoting(r.proxies[1], firstN(5)))
	})
	elapsed, memoryAfter := time.Since(startedAt), r.residentMemory()
	t.Logf("votes after %v, slowest LOCK %v, resident %d MB before and %d MB after", elapsed.Round(time.Millisecond),
		maxDuration.Round(time.Millisecond), memoryBefore>>20, memoryAfter>>20)
	if growth, bound := memoryAfter-memoryBefore, int64(64<<20+locks*200); growth > bound {
		t.Errorf("the proxies grew by %d MB, of at most %d", growth>>20, bound>>20)
	}
	script := `local n = 0 for i = ARGV[1], ARGV[2] do n = n + redis.call('exists', 'k-many:' .. i) end return n`
	if count, err := kit.QueryDatabase(r.servers[4], "0", "EVAL", script, "0", "0", strconv.Itoa(locks-1)); err != nil ||
		count != int64(locks) {
		t.Errorf("it has %v of %d locks, %v", count, locks, err)
	}
}

// residentMemory returns the memory of all proxies in bytes.
func (r *rig) residentMemory() (bytes int64) {
	for _, proxy := range r.proxies {
		n, err := proxy.RSS()
		kit.Must(r.t, err)
		bytes += n
	}
	return bytes
}

// takeLocks takes the given number of locks for an hour; their keys are k-many:0 and so on.
func takeLocks(t *testing.T, proxy *harness.Proxy, locks int) {
	t.Helper()
	const clients, batchSize = 32, 100
	var workers sync.WaitGroup
	var granted atomic.Int64
	for i := range clients {
		client := kit.Connect(t, proxy)
		workers.Go(func() {
			for from := i * batchSize; from < locks; from += clients * batchSize {
				var batch []byte
				to := min(from+batchSize, locks)
				for n := from; n < to; n++ {
					batch = redistest.AppendCommand(batch, "LOCK", fmt.Sprint("k-many:", n), "t", "PX", "3600000")
				}
				if client.Send(batch) != nil {
					return
				}
				for range to - from {
					if reply, err := client.Receive(); err != nil {
						return
					} else if _, ok := reply.(int64); ok {
						granted.Add(1)
					}
				}
			}
		})
	}
	workers.Wait()
	if n := int(granted.Load()); n != locks {
		t.Fatalf("%d of %d locks are granted", n, locks)
	}
}
