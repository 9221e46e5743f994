package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
)

// TestMain ignores one goroutine: a connection pool of go-redis that failed to dial sleeps for a
// second before it notices that it was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// startMasters runs n Redis servers in memory and a cluster over them.
func startMasters(t *testing.T, n int) ([]*miniredis.Miniredis, *Cluster) {
	t.Helper()
	var masters []*miniredis.Miniredis
	var urls []string
	for range n {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		masters = append(masters, m)
		urls = append(urls, "redis://"+m.Addr())
	}
	return masters, runCluster(t, Options{Masters: urls, FreshStart: true})
}

// startCluster runs a cluster, on masters that may reply slowly, until the test ends.
func startCluster(t testing.TB, opts Options) *Cluster {
	t.Helper()
	opts.Access.Timeout = 5 * time.Second
	c, err := NewCluster(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// runCluster does the same as startCluster, and waits until all masters vote.
func runCluster(t testing.TB, opts Options) *Cluster {
	t.Helper()
	c := startCluster(t, opts)
	ready, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if !c.WaitReady(ready) {
		t.Fatalf("the masters do not come up: %+v", c.Status())
	}
	return c
}

func (c *Cluster) mustTake(t *testing.T, key Key) {
	t.Helper()
	if err := c.takeFreeKey(t, key); err != nil {
		t.Fatal(err)
	}
}

// takeFreeKey takes a lock that no client holds. If a majority agrees too late because the machine
// is busy, takeFreeKey tries again until the cells of the last try are removed.
func (c *Cluster) takeFreeKey(t *testing.T, key Key) error {
	t.Helper()
	for wasLate := false; ; wasLate = true {
		_, err := c.Take(t.Context(), TakeRequest{Keys: []Key{key}, TakeOptions: TakeOptions{Tokens: []string{token},
			TTL: time.Minute}})
		if !isLate(err) && !(wasLate && errors.Is(err, ErrHeld)) {
			return err
		}
	}
}

func isLate(err error) bool {
	noQuorum, ok := errors.AsType[*NoQuorumError](err)
	return ok && noQuorum.AgreementTime > 0
}

// TestWrongType checks that a key that is not a string counts as held by another client, and that
// no command changes it.
func TestWrongType(t *testing.T) {
	masters, c := startMasters(t, 3)
	for _, m := range masters {
		m.HSet(job.Name, "f", "v")
	}
	_, err := c.Take(t.Context(), TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{token}, TTL: time.Minute}})
	if !errors.Is(err, ErrHeld) {
		t.Errorf("LOCK: %v", err)
	}
	snapshots, err := c.Read(t.Context(), []Key{job})
	if err != nil || !snapshots[0].Present {
		t.Errorf("read %+v, %v", snapshots, err)
	}
	if err := c.Release(t.Context(), job, token); !errors.Is(err, ErrNotHeld) {
		t.Errorf("UNLOCK: %v", err)
	}
	if _, err := c.Extend(t.Context(), job, token, time.Hour); !errors.Is(err, ErrNotHeld) {
		t.Errorf("EXTEND: %v", err)
	}
	_, err = c.Update(t.Context(), job, nil,
		func(Snapshot) (Decision, error) { return Decision{Action: Put, Value: token, TTL: time.Minute}, nil })
	if err != ErrForeign {
		t.Errorf("SET: %v", err)
	}
	for _, m := range masters {
		if v := m.HGet(job.Name, "f"); v != "v" {
			t.Errorf("it holds %q now", v)
		}
	}
}

// TestServerBeforeRedis7 runs masters whose SET refuses NX together with GET. A script replaces the
// SET.
func TestServerBeforeRedis7(t *testing.T) {
	masters, c := startMasters(t, 3)
	refused := make([]int, len(masters))
	for i, m := range masters {
		m.Server().SetPreHook(func(peer *server.Peer, cmd string, args ...string) bool {
			old := strings.EqualFold(cmd, "SET") && slices.Contains(args, "NX") && slices.Contains(args, "GET")
			if old {
				refused[i]++
				peer.WriteError("ERR syntax error")
			}
			return old
		})
	}
	for i := range 10 {
		c.mustTake(t, Key{Name: fmt.Sprint(i)})
	}
	if _, err := c.Take(t.Context(), TakeRequest{Keys: []Key{{Name: "0"}},
		TakeOptions: TakeOptions{Tokens: []string{rival}, TTL: time.Minute}}); !errors.Is(err, ErrHeld) {
		t.Errorf("the second one: %v", err)
	}
	for i, n := range refused {
		if n == 10 {
			t.Errorf("master %d was asked every time in vain", i)
		}
	}
}

func TestReleaseAfterScriptFlush(t *testing.T) {
	masters, c := startMasters(t, 3)
	c.mustTake(t, job)
	for _, m := range masters {
		client := redis.NewClient(&redis.Options{Addr: m.Addr()})
		client.ScriptFlush(t.Context())
		_ = client.Close()
	}
	if err := c.Release(t.Context(), job, token); err != nil {
		t.Errorf("release after SCRIPT FLUSH: %v", err)
	}
}

// TestDatabases checks that the masters use the databases of the client.
func TestDatabases(t *testing.T) {
	masters, c := startMasters(t, 3)
	c.mustTake(t, job)
	c.mustTake(t, Key{DB: 3, Name: job.Name})
	for _, m := range masters {
		redistest.Await(t, "it holds the key", func() bool { return m.DB(3).Exists(job.Name) })
	}
}

func TestVoteOfErrorReply(t *testing.T) {
	masters, c := startMasters(t, 3)
	masters[0].SetError("OOM command not allowed when used memory > 'maxmemory'.")
	masters[1].SetError("LOADING Redis is loading the dataset in memory")
	_, err := c.Take(t.Context(), TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{token}, TTL: time.Minute}})
	noQuorum, ok := err.(*NoQuorumError)
	if !ok || noQuorum.VoteCount != 1 {
		t.Fatalf("got %v, want no quorum with one answer", err)
	}
}

func TestMasterURLs(t *testing.T) {
	for _, u := range []string{"redis://localhost:6379/3", "http://localhost", "redis://:p%zz@localhost", ""} {
		if _, err := NewCluster(Options{Masters: []string{u}}); err == nil {
			t.Errorf("%q was taken for a master", u)
		}
	}
	if _, err := NewCluster(Options{}); err == nil {
		t.Error("a cluster without masters")
	}
}
