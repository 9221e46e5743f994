//go:build integration

package moving

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// mixEnv sets the number of rounds of random operations and faults.
	mixEnv = "REDLOCK_MIX"
	// mostTimeBack limits the time from when all servers work until locks are available again.
	mostTimeBack = 10 * time.Second
	// longestFault is the maximum duration of a fault.
	longestFault = 3 * time.Second
)

// TestRandomMix: operators move the locks, abort moves and change masters. At the same time, and at
// random, proxies are killed and stopped, masters are stopped and lose their data, and the upstream
// restarts. No lock is granted twice or lost, and each key is in one location. When all servers
// work again, each proxy grants locks within mostTimeBack, without an operator.
func TestRandomMix(t *testing.T) {
	redistest.SkipShort(t)
	rounds := int(kit.NumberFrom(t, mixEnv, 3))
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	m := startMix(t, rand.New(rand.NewPCG(seed, 2)))
	client := kit.Connect(t, m.proxies[0])
	for _, k := range keepers {
		kit.Do(t, client, k.make...)
		if k.ends {
			kit.Want(t, client, int64(1), "PEXPIRE", k.key, kit.Millis(mixKeptFor))
		}
	}
	l := startLoad(t, m.rig, seed)
	l.leaveUpstream()
	var back []time.Duration
	grants := 0
	for i := range rounds {
		ended := l.moves()
		said := m.disturb()
		m.settle()
		took := m.wantAvailable()
		ended()
		back = append(back, took)
		if err := m.wantOnePlace(); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		for _, proxy := range m.proxies {
			look(t, kit.Connect(t, proxy))
		}
		m.wantVoting()
		seen := l.take()
		grants += seen.grants
		t.Logf("round %d: back after %v, %d grants; %s", i, took.Round(time.Millisecond), seen.grants, said)
		for _, what := range seen.wrong {
			t.Errorf("round %d: %s", i, what)
		}
		if t.Failed() {
			break // after a wrong reply, further results mean little
		}
	}
	_, double := l.stop()
	for _, what := range append(l.take().wrong, double...) {
		t.Error(what)
	}
	t.Logf("%d rounds, %d grants, %d of them double; locks were available again: %s", len(back), grants, len(double),
		figures(back))
}

// mixKeptFor is longer than a thousand rounds.
const mixKeptFor = 12 * time.Hour

// mix is a rig of three proxies whose masters change: five of seven servers are masters.
type mix struct {
	*rig
	random  *rand.Rand
	servers []*redistest.Server
	files   []string
	// killed is the proxy that was killed in the current round, or -1.
	killed int
	// probes counts the locks that were requested to check whether locks are available.
	probes int
}

func startMix(t *testing.T, random *rand.Rand) *mix {
	t.Helper()
	m := &mix{rig: &rig{t: t, upstream: kit.StartRedis(t, redistest.Durable()...)}, random: random}
	for range 7 {
		m.servers = append(m.servers, kit.StartRedis(t))
	}
	m.masters = slices.Clone(m.servers[:5])
	for i := range 3 {
		m.files = append(m.files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i)))
		m.addrs = append(m.addrs, "127.0.0.1:"+kit.FreePort(t))
		m.configure(i, m.masters)
		m.proxies = append(m.proxies, kit.StartConfigured(t, m.files[i]))
	}
	m.wantVoting()
	return m
}

// configure writes the masters into the file of a proxy.
func (m *mix) configure(proxy int, masters []*redistest.Server) {
	m.t.Helper()
	text := fmt.Sprintf("listen: %s\nfresh-start: true\nmaster-timeout: 1s\nmax-ttl: 24h\nlock-keys: [\"lock:*\"]\nupstream: %s\nmove-from-upstream: true\nmaster:\n", m.addrs[proxy], m.upstream.URL())
	for _, master := range masters {
		text += "  - " + master.URL() + "\n"
	}
	kit.Must(m.t, kit.ReplaceFile(m.files[proxy], text))
}

// event is one of the concurrent events of a round. It ends when do returns.
type event struct {
	name string
	do   func() error
}

// disturb runs random events at the same time, and returns their names.
func (m *mix) disturb() string {
	m.t.Helper()
	events := m.events()
	var said []string
	var failed []error
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, e := range events {
		after := time.Duration(m.random.Int64N(int64(1500 * time.Millisecond)))
		said = append(said, fmt.Sprintf("%s after %v", e.name, after.Round(time.Millisecond)))
		running.Go(func() {
			time.Sleep(after) // so that events begin at random times
			err := e.do()
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		})
	}
	running.Wait()
	kit.Must(m.t, errors.Join(failed...))
	return strings.Join(said, ", ")
}

// events draws one to four events. At most two masters lose their data, including a replaced one;
// at most one proxy is killed, and another one stopped.
func (m *mix) events() []event {
	masters, proxies := slices.Clone(m.masters), []int{0, 1, 2}
	m.random.Shuffle(len(masters), func(i, j int) { masters[i], masters[j] = masters[j], masters[i] })
	m.random.Shuffle(len(proxies), func(i, j int) { proxies[i], proxies[j] = proxies[j], proxies[i] })
	m.killed = -1
	stalled := masters[2 : 2+1+m.random.IntN(3)]
	all := []event{
		m.operator("move", "--even-if-others"), m.operator("move --back", "--even-if-others", toUpstream),
		m.operator("a second move", "--even-if-others"),
		m.operator("move --abort", "--abort"),
		{fmt.Sprintf("proxy %d is killed", proxies[0]),
			func() error { m.killed = proxies[0]; return m.proxies[proxies[0]].Kill() }},
		{fmt.Sprintf("proxy %d stands still", proxies[1]), m.forRandomTime(m.proxies[proxies[1]].Pause,
			m.proxies[proxies[1]].Continue)},
		{fmt.Sprintf("%d masters stand still", len(stalled)), m.forRandomTime(forEach(stalled,
			(*redistest.Server).Pause), forEach(stalled, (*redistest.Server).Continue))},
		{"a master loses its data", m.forRandomTime(masters[0].Kill, masters[0].Restart)},
	}
	if m.random.IntN(2) == 0 {
		all = append(all, m.replacement(masters[1], proxies[m.random.IntN(2)]))
	} else {
		all = append(all, event{"another master loses its data", m.forRandomTime(masters[1].Kill, masters[1].Restart)})
	}
	if m.random.IntN(2) == 0 {
		all = append(all, event{"the upstream restarts", m.upstream.Revive})
	} else {
		all = append(all, event{"the upstream stands still", m.forRandomTime(m.upstream.Pause, m.upstream.Continue)})
	}
	m.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+m.random.IntN(4)]
}

// operator returns an event that starts a move at a random proxy. Any result is allowed.
func (m *mix) operator(name string, flags ...string) event {
	proxy := m.random.IntN(len(m.proxies))
	return event{fmt.Sprintf("%s at proxy %d", name, proxy), func() error {
		_, err := m.move(proxy, flags...)
		var failed errNotMoved
		if errors.As(err, &failed) {
			return nil
		}
		return err
	}}
}

// replacement returns an event in which an operator replaces a master by another server,
// at the given proxy. Any result is allowed.
func (m *mix) replacement(master *redistest.Server, proxy int) event {
	spare := slices.IndexFunc(m.servers, func(s *redistest.Server) bool { return !slices.Contains(m.masters, s) })
	next := slices.Clone(m.masters)
	next[slices.Index(next, master)] = m.servers[spare]
	return event{fmt.Sprintf("a master is replaced at proxy %d", proxy), func() error {
		for i := range m.proxies {
			m.configure(i, next)
		}
		client, err := redistest.Dial(m.addrs[proxy], kit.Patience)
		if err != nil {
			return nil // the proxy was killed
		}
		defer client.Close()
		_, _ = client.Do("PROXY", "RELOAD")
		return nil
	}}
}

// forRandomTime returns a function that begins a fault, and ends it after a random time.
func (m *mix) forRandomTime(begin, end func() error) func() error {
	long := time.Duration(m.random.Int64N(int64(longestFault)))
	return func() error {
		err := begin()
		time.Sleep(long) // the fault lasts
		return errors.Join(err, end())
	}
}

// forEach returns a function that calls do for all servers.
func forEach(servers []*redistest.Server, do func(*redistest.Server) error) func() error {
	return func() error {
		var failed []error
		for _, server := range servers {
			failed = append(failed, do(server))
		}
		return errors.Join(failed...)
	}
}

var mastersInInfo = regexp.MustCompile(`address=([^,]+),state=`)

// settle waits until the running proxies agree on the masters, writes the masters into all files,
// and starts the killed proxy.
func (m *mix) settle() {
	m.t.Helper()
	var agreed []string
	kit.Soon(m.t, func() error {
		agreed = nil
		for i := range m.proxies {
			if i == m.killed {
				continue
			}
			client, err := redistest.Dial(m.addrs[i], kit.Patience)
			if err != nil {
				return err
			}
			defer client.Close()
			info, err := client.Do("PROXY", "INFO")
			if err != nil {
				return err
			}
			var has []string
			for _, found := range mastersInInfo.FindAllStringSubmatch(kit.Text(info), -1) {
				has = append(has, found[1])
			}
			slices.Sort(has)
			if agreed != nil && !slices.Equal(has, agreed) {
				return fmt.Errorf("proxies have the masters %v and %v", agreed, has)
			}
			agreed = has
		}
		return nil
	})
	m.masters = slices.DeleteFunc(slices.Clone(m.servers),
		func(s *redistest.Server) bool { return !slices.Contains(agreed, s.Addr()) })
	if len(m.masters) != 5 {
		m.t.Fatalf("the masters are %v", agreed)
	}
	for i := range m.proxies {
		m.configure(i, m.masters)
	}
	if m.killed >= 0 {
		m.proxies[m.killed] = kit.StartConfigured(m.t, m.files[m.killed])
	}
}

// wantAvailable waits until each proxy grants a lock, and returns how long that took.
func (m *mix) wantAvailable() time.Duration {
	m.t.Helper()
	began := time.Now()
	for i, proxy := range m.proxies {
		client := kit.Connect(m.t, proxy)
		m.probes++
		key := fmt.Sprint("lock:probe:", m.probes) // a new key each time, because the DEL of the last one may have failed
		kit.Within(m.t, mostTimeBack-time.Since(began), func() error {
			if reply := kit.Do(m.t, client, "SET", key, "me", "NX", "PX", "60000"); reply != "OK" {
				return fmt.Errorf("proxy %d grants no lock: %v", i, reply)
			}
			kit.Do(m.t, client, "DEL", key)
			return nil
		})
	}
	return time.Since(began)
}

var placeInInfo = regexp.MustCompile(`redlock_lock_storage:(\S+)`)

// wantOnePlace returns an error unless the proxies agree where the locks are stored, and no locks
// are left at the other location.
func (m *mix) wantOnePlace() error {
	at := ""
	for _, proxy := range m.proxies {
		found := placeInInfo.FindStringSubmatch(kit.Text(kit.Do(m.t, kit.Connect(m.t, proxy), "PROXY", "INFO")))
		switch {
		case found == nil, found[1] != "upstream" && found[1] != "masters":
			return fmt.Errorf("a proxy says that the locks are at %q", found)
		case at != "" && at != found[1]:
			return fmt.Errorf("proxies say that the locks are at the %s and at the %s", at, found[1])
		}
		at = found[1]
	}
	return m.wantOnlyAt(at == "upstream")
}
