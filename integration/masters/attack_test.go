//go:build integration

package masters

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestConflictingChanges checks that, if two proxies get different masters at the same time, they
// agree on one set. The reload of the proxy with the other set reports the conflict. This proxy
// follows when its file is corrected.
func TestConflictingChanges(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	client := kit.Connect(t, r.proxies[0])
	kit.WantGrant(t, client, "LOCK", "held", "t", "PX", "600000")
	r.writeMasters(0, 0, 1, 2, 3)
	r.writeMasters(1, 0, 1, 2, 4)
	var replies [2]string
	var reloads sync.WaitGroup
	for i := range r.proxies {
		reloads.Go(func() { replies[i] = r.tryReload(i) })
	}
	reloads.Wait()
	t.Log(replies)
	var agreedMasters []int
	var loser int
	// One of the proxies has changed to its own list, whatever its reply was.
	kit.Eventually(t, func() error {
		for i, proxy := range r.proxies {
			agreedMasters, loser = []int{0, 1, 2, 3 + i}, 1-i
			if r.checkVoting(proxy, agreedMasters) == nil {
				return nil
			}
		}
		return errors.New("the masters are not changed")
	})
	r.wantConflict(replies[loser], agreedMasters)
	r.writeAllMasters(agreedMasters...)
	r.wantVoting(agreedMasters...)
	kit.Want(t, client, nil, "LOCK", "held", "u", "PX", "1000")
	kit.Want(t, kit.Connect(t, r.proxies[1]), int64(1), "UNLOCK", "held", "t")
}

// wantConflict fails the test unless a reply to PROXY RELOAD refuses a change because of a
// conflicting change to the given masters.
func (r *rig) wantConflict(reply string, masters []int) {
	r.t.Helper()
	var addrs []string
	for _, i := range masters {
		addrs = append(addrs, r.links[i].Addr())
	}
	list := strings.Join(addrs, ", ")
	cause, refused := strings.CutPrefix(reply, "ERR the configuration was not reloaded: master: ")
	for _, conflict := range []string{
		"another proxy is changing the masters to " + list, "other proxies changed the masters to " + list,
		"the masters are being changed, or another proxy has changed them",
	} {
		if refused && strings.HasPrefix(cause, conflict) {
			return
		}
	}
	r.t.Errorf("the reload of the other masters: %s; want the conflict with %s", reply, list)
}

// killSequence lists changes from the first three masters to other servers, and back.
var killSequence = [][]int{
	{0, 1, 2, 3}, {0, 1, 2, 3, 4}, {0, 1, 5, 3, 4}, {0, 5, 3, 4}, {0, 3, 4},
	{0, 3, 4, 1}, {0, 3, 4, 1, 2}, {0, 3, 5, 1, 2}, {0, 5, 1, 2}, {0, 1, 2},
}

// TestKilledChanger kills the proxy that changes the masters, at any moment of the change, under
// load. If the change had begun, the other proxies complete it. Otherwise another proxy begins it.
// The killed proxy starts again, alternately with the new and with the old masters in its file.
// With the old masters it grants no lock, and follows the change when its file is corrected.
func TestKilledChanger(t *testing.T) {
	redistest.SkipShort(t)
	seed := kit.NumberFrom(t, "REDLOCK_MASTERS_SEED", 1)
	random := rand.New(rand.NewPCG(seed, 7))
	r := startRig(t, 3, 3, 6)
	l := startLoad(r.proxies[1:], seed)
	current := firstN(3)
	for n := range rounds(2, len(killSequence)) {
		next := killSequence[n%len(killSequence)]
		r.writeAllMasters(next...)
		go r.tryReload(0)
		// The proxy is killed before the change, or at any moment of it.
		time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
		kit.Must(t, r.proxies[0].Kill())
		// The sent commands arrive. If they need longer, the reload below finds the change begun.
		time.Sleep(300 * time.Millisecond)
		hasBegun := r.hasBegunChange(1, current)
		t.Logf("to %v: begun %v", next, hasBegun)
		if !hasBegun {
			r.reload(1)
		}
		if n%2 == 1 {
			r.writeMasters(0, current...)
		}
		r.proxies[0] = kit.StartConfigured(t, r.files[0])
		if n%2 == 1 {
			for _, proxy := range r.proxies[1:] {
				kit.Eventually(t, func() error { return r.checkVoting(proxy, next) })
			}
			r.wantNoGrant(0)
			r.writeMasters(0, next...)
		}
		r.wantVoting(next...)
		current = next
	}
	l.wantNoDoubleGrants(t)
}

// wantNoGrant fails the test unless a proxy refuses a lock because its list of masters is outdated.
func (r *rig) wantNoGrant(proxy int) {
	r.t.Helper()
	client := kit.Connect(r.t, r.proxies[proxy])
	client.SetTimeout(20 * time.Second)
	reply, err := client.Do("LOCK", "not shared", "t", "PX", "1000")
	if text := fmt.Sprint(reply); err != nil || !strings.HasPrefix(text, "NOQUORUM the masters are being changed") {
		r.t.Errorf("LOCK at the proxy with the old masters: %s, %v", text, err)
	}
}

// hasBegunChange reports whether a proxy has other masters than the given ones.
func (r *rig) hasBegunChange(proxy int, masters []int) bool {
	r.t.Helper()
	info, err := proxyInfo(r.proxies[proxy])
	kit.Must(r.t, err)
	return r.checkMasters(info, masters) != nil
}

// TestStoppedProxyDuringChange stops a proxy before a change, and lets it continue after the
// change. Then two of the new masters hold a lock, and two masters that the proxy knew do not. The
// proxy does not count the votes of these two masters, and follows the change.
func TestStoppedProxyDuringChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	client := kit.Connect(t, r.proxies[1])
	kit.WantGrant(t, client, "LOCK", "k", "u", "PX", "60000") // opens the proxy's connections
	kit.Want(t, client, int64(1), "UNLOCK", "k", "u")
	kit.Must(t, r.proxies[1].Signal(stopSignal))
	r.writeAllMasters(0, 1, 3)
	r.reload(0)
	kit.Eventually(t, func() error { return r.checkVoting(r.proxies[0], []int{0, 1, 3}) })
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k", "t", "PX", "60000")
	kit.EachMaster(t, []*redistest.Server{r.servers[0], r.servers[1], r.servers[3]},
		func(s *redistest.Server) error { return kit.CheckToken(s, "0", "k", "t") })
	kit.Must(t, kit.SendToMaster(r.servers[1], "DEL", "k")) // as if the master had missed the LOCK
	lateClient, err := redistest.Dial(r.proxies[1].Addr(), 20*time.Second)
	kit.Must(t, err)
	defer lateClient.Close()
	kit.Must(t, lateClient.Send(redistest.AppendCommand(nil, "LOCK", "k", "u", "PX", "1000")))
	kit.Must(t, r.proxies[1].Signal(continueSignal))
	reply, err := lateClient.Receive()
	if _, granted := reply.(int64); granted || err != nil {
		t.Errorf("LOCK at the proxy that was stopped: %v, %v", reply, err)
	}
	r.wantVoting(0, 1, 3)
}

// TestStartWithDifferentMasters starts proxies with the former masters, and with masters on which
// the proxies never agreed. Each of these proxies grants no lock and reports why.
func TestStartWithDifferentMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 1, 3, 5)
	r.change(0, 1, 2, 3)
	var clients []*redistest.Client
	lists := [][]int{{0, 1, 2}, {0, 1, 2, 4}}
	for _, masters := range lists {
		var urls []string
		for _, i := range masters {
			urls = append(urls, r.url(i))
		}
		client := kit.Connect(t, kit.StartProxy(t, urls))
		client.SetTimeout(20 * time.Second)
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k", "t", "PX", "1000")))
		clients = append(clients, client)
	}
	for i, client := range clients {
		reply, err := client.Receive()
		if text := fmt.Sprint(reply); err != nil || !strings.HasPrefix(text,
			"NOQUORUM the masters are being changed, or another proxy has changed them") {
			t.Errorf("masters %v: %s, %v", lists[i], text, err)
		}
	}
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k", "t", "PX", "1000")
}

// TestStartWithRemovedMaster starts a proxy with the former masters. It grants no lock, and names
// the present masters: the removed one knows them.
func TestStartWithRemovedMaster(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 1, 3, 4)
	r.change(0, 1, 3)
	client := kit.Connect(t, kit.StartProxy(t, []string{r.url(0), r.url(1), r.url(2)}))
	kit.Eventually(t, func() error {
		text := fmt.Sprint(kit.Do(t, client, "LOCK", "k", "t", "PX", "1000"))
		if !strings.HasPrefix(text, "NOQUORUM the masters are being changed to ") {
			return errors.New(text)
		}
		for _, i := range []int{0, 1, 3} {
			if !strings.Contains(text, r.links[i].Addr()) {
				t.Fatal(text)
			}
		}
		return nil
	})
}

// TestRefusedChanges checks that impossible changes are refused, and the masters stay the same.
func TestRefusedChanges(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 1, 3, 6)
	otherRig := startRig(t, 1, 3, 3)
	foreignMaster := len(r.links)
	r.links = append(r.links, otherRig.links[0])
	kit.Must(t, r.servers[5].Kill())
	for _, test := range []struct {
		masters []int
		want    string
	}{
		{[]int{0, 1, 2, 3, 4}, "one master can be added, removed or replaced at a time"},
		{[]int{0, 3, 4}, "one master can be added, removed or replaced at a time"},
		{[]int{0, 1, 5}, "cannot be used"},
		{[]int{0, 1, 2, foreignMaster}, "already votes in another set of masters"},
	} {
		r.writeMasters(0, test.masters...)
		if reply := r.tryReload(0); !strings.Contains(reply, "ERR the configuration was not reloaded: master: ") ||
			!strings.Contains(reply, test.want) {
			t.Errorf("%v: %s", test.masters, reply)
		}
		kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", fmt.Sprint(test.masters), "t", "PX", "1000")
	}
}

// TestProxyRestartsDuringChange kills the only proxy when a master is sealed and has not joined
// the new set. The proxy then starts with the new masters, and completes the change. Locks are
// still held.
func TestProxyRestartsDuringChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 1, 3, 4)
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k", "t", "PX", "600000")
	r.writeMasters(0, 0, 1, 3)
	go r.tryReload(0)
	kit.Eventually(t, func() error {
		if !r.isSealed() {
			return errors.New("it is not sealed")
		}
		return nil
	})
	kit.Must(t, r.proxies[0].Kill())
	r.proxies[0] = kit.StartConfigured(t, r.files[0])
	r.wantVoting(0, 1, 3)
	client := kit.Connect(t, r.proxies[0])
	kit.Want(t, client, nil, "LOCK", "k", "u", "PX", "1000")
	kit.Want(t, client, int64(1), "UNLOCK", "k", "t")
}

// isSealed reports whether the first master has a seal, so that it has not joined the next set yet.
func (r *rig) isSealed() bool {
	text, err := kit.QueryDatabase(r.servers[0], "0", "GET", "redlock-proxy:marker")
	return err == nil && strings.Contains(fmt.Sprint(text), ";")
}

// TestDoubleGrantDetection checks that the load would find double grants in the other tests. Some
// proxies use three masters, one of them unreachable, and another proxy uses five masters. The
// masters know of no change, so the load finds double grants.
func TestDoubleGrantDetection(t *testing.T) {
	redistest.SkipShort(t)
	servers := kit.StartMasters(t)
	startUnguarded := func(masters ...string) *harness.Proxy { return kit.StartProxy(t, masters, "--guard=false") }
	urls := redistest.URLs(servers)
	var proxies []*harness.Proxy
	for range 3 {
		proxies = append(proxies, startUnguarded(urls[0], urls[1], "redis://127.0.0.1:"+kit.FreePort(t)))
	}
	proxies = append(proxies, startUnguarded(urls...))
	for seed := range uint64(10) {
		l := startLoad(proxies, seed)
		time.Sleep(3 * time.Second) // time for the load
		if _, overlaps := l.stop(t); len(overlaps) > 0 {
			return
		}
	}
	t.Error("no grant is double")
}
