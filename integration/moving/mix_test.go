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
	// randomRoundsEnv sets the number of rounds of random operations and faults.
	randomRoundsEnv = "REDLOCK_MIX"
	// maxRecovery limits the time from when all servers work until locks are available again.
	maxRecovery = 10 * time.Second
	// maxFault is the maximum duration of a fault.
	maxFault = 3 * time.Second
)

// TestRandomEvents lets operators move the locks, abort moves and change masters. At the same time,
// and at random, proxies are killed and stopped. Masters are stopped and lose their data, and the
// upstream restarts. No lock is granted twice or lost, and each key is in one location. When all
// servers work again, each proxy grants locks within maxRecovery. An operator only keeps the present
// masters in the proxies' files (restoreProxies, correctFiles).
func TestRandomEvents(t *testing.T) {
	redistest.SkipShort(t)
	rounds := int(kit.NumberFrom(t, randomRoundsEnv, 3))
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	m := startRandomRig(t, rand.New(rand.NewPCG(seed, 2)))
	client := kit.Connect(t, m.proxies[0])
	for _, k := range heldLocks {
		kit.Do(t, client, k.setCommand...)
		if k.expires {
			kit.Want(t, client, int64(1), "PEXPIRE", k.key, kit.Millis(longLockTTL))
		}
	}
	l := startLoad(t, m.rig, seed)
	l.stopDirectClients()
	var recoveries []time.Duration
	grants := 0
	for i := range rounds {
		endMove := l.beginMove()
		events := m.runEvents()
		m.restoreProxies()
		recovery := m.wantAvailable()
		endMove()
		recoveries = append(recoveries, recovery)
		if err := m.checkOneLocation(); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		for _, proxy := range m.proxies {
			wantHeldLocks(t, kit.Connect(t, proxy))
		}
		m.wantVoting()
		records := l.takeRound()
		grants += records.grants
		t.Logf("round %d: back after %v, %d grants; %s", i, recovery.Round(time.Millisecond), records.grants, events)
		for _, violation := range records.violations {
			t.Errorf("round %d: %s", i, violation)
		}
		if t.Failed() {
			break // after a wrong reply, further results mean little
		}
	}
	_, overlaps := l.stop()
	for _, violation := range append(l.takeRound().violations, overlaps...) {
		t.Error(violation)
	}
	t.Logf("%d rounds, %d grants, %d of them double; locks were available again: %s", len(recoveries), grants, len(overlaps),
		summary(recoveries))
}

// longLockTTL is longer than a thousand rounds.
const longLockTTL = 12 * time.Hour

// randomRig is a rig of three proxies whose masters change: five of seven servers are masters.
type randomRig struct {
	*rig
	random  *rand.Rand
	servers []*redistest.Server
	files   []string
	// killedProxy is the proxy that was killed in the current round, or -1.
	killedProxy int
	// probeCount counts the locks that were requested to check whether locks are available.
	probeCount int
}

func startRandomRig(t *testing.T, random *rand.Rand) *randomRig {
	t.Helper()
	m := &randomRig{rig: &rig{t: t, upstream: kit.StartRedis(t, redistest.DurableArgs()...)}, random: random}
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
func (m *randomRig) configure(proxy int, masters []*redistest.Server) {
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

// runEvents runs random events at the same time, and returns their names.
func (m *randomRig) runEvents() string {
	m.t.Helper()
	events := m.events()
	var descriptions []string
	var errs []error
	var mu sync.Mutex
	var workers sync.WaitGroup
	for _, e := range events {
		delay := time.Duration(m.random.Int64N(int64(1500 * time.Millisecond)))
		descriptions = append(descriptions, fmt.Sprintf("%s after %v", e.name, delay.Round(time.Millisecond)))
		workers.Go(func() {
			time.Sleep(delay) // so that events begin at random times
			err := e.do()
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	workers.Wait()
	kit.Must(m.t, errors.Join(errs...))
	return strings.Join(descriptions, ", ")
}

// events draws one to four events. At most two masters lose their data, including a replaced
// master. At most one proxy is killed, and at most one proxy is stopped.
func (m *randomRig) events() []event {
	masters, proxies := slices.Clone(m.masters), []int{0, 1, 2}
	m.random.Shuffle(len(masters), func(i, j int) { masters[i], masters[j] = masters[j], masters[i] })
	m.random.Shuffle(len(proxies), func(i, j int) { proxies[i], proxies[j] = proxies[j], proxies[i] })
	m.killedProxy = -1
	stalled := masters[2 : 2+1+m.random.IntN(3)]
	events := []event{
		m.moveEvent("move", "--even-if-others"), m.moveEvent("move --back", "--even-if-others", backFlag),
		m.moveEvent("a second move", "--even-if-others"),
		m.moveEvent("move --abort", "--abort"),
		{fmt.Sprintf("proxy %d is killed", proxies[0]),
			func() error { m.killedProxy = proxies[0]; return m.proxies[proxies[0]].Kill() }},
		{fmt.Sprintf("proxy %d stands still", proxies[1]), m.boundedFault(m.proxies[proxies[1]].Pause,
			m.proxies[proxies[1]].Continue)},
		{fmt.Sprintf("%d masters stand still", len(stalled)), m.boundedFault(forEach(stalled,
			(*redistest.Server).Pause), forEach(stalled, (*redistest.Server).Continue))},
		{"a master loses its data", m.boundedFault(masters[0].Kill, masters[0].Restart)},
	}
	if m.random.IntN(2) == 0 {
		events = append(events, m.replaceEvent(masters[1], proxies[m.random.IntN(2)]))
	} else {
		events = append(events, event{"another master loses its data", m.boundedFault(masters[1].Kill, masters[1].Restart)})
	}
	if m.random.IntN(2) == 0 {
		events = append(events, event{"the upstream restarts", m.upstream.RestartWithData})
	} else {
		events = append(events, event{"the upstream stands still", m.boundedFault(m.upstream.Pause, m.upstream.Continue)})
	}
	m.random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events[:1+m.random.IntN(4)]
}

// moveEvent returns an event that starts a move at a random proxy. Any result is allowed.
func (m *randomRig) moveEvent(name string, flags ...string) event {
	proxy := m.random.IntN(len(m.proxies))
	return event{fmt.Sprintf("%s at proxy %d", name, proxy), func() error {
		_, err := m.move(proxy, flags...)
		var moveErr errNotMoved
		if errors.As(err, &moveErr) {
			return nil
		}
		return err
	}}
}

// replaceEvent returns an event in which an operator replaces a master by another server,
// at the given proxy. Any result is allowed.
func (m *randomRig) replaceEvent(master *redistest.Server, proxy int) event {
	spare := slices.IndexFunc(m.servers, func(s *redistest.Server) bool { return !slices.Contains(m.masters, s) })
	next := slices.Clone(m.masters)
	next[slices.Index(next, master)] = m.servers[spare]
	return event{fmt.Sprintf("a master is replaced at proxy %d", proxy), func() error {
		for i := range m.proxies {
			m.configure(i, next)
		}
		client, err := redistest.Dial(m.addrs[proxy], kit.WaitLimit)
		if err != nil {
			return nil // the proxy was killed
		}
		defer client.Close()
		_, _ = client.Do("PROXY", "RELOAD")
		return nil
	}}
}

// boundedFault returns a function that begins a fault, and ends it after a random time.
func (m *randomRig) boundedFault(begin, end func() error) func() error {
	duration := time.Duration(m.random.Int64N(int64(maxFault)))
	return func() error {
		err := begin()
		time.Sleep(duration) // the fault lasts
		return errors.Join(err, end())
	}
}

// forEach returns a function that calls do for all servers.
func forEach(servers []*redistest.Server, do func(*redistest.Server) error) func() error {
	return func() error {
		var errs []error
		for _, server := range servers {
			errs = append(errs, do(server))
		}
		return errors.Join(errs...)
	}
}

var masterAddrPattern = regexp.MustCompile(`address=([^,]+),state=`)

// restoreProxies waits until the running proxies agree on the masters, writes the masters into all
// files, and starts the killed proxy.
func (m *randomRig) restoreProxies() {
	m.t.Helper()
	var masters []string
	kit.Eventually(m.t, func() error {
		masters = nil
		for i := range m.proxies {
			if i == m.killedProxy {
				continue
			}
			client, err := redistest.Dial(m.addrs[i], kit.WaitLimit)
			if err != nil {
				return err
			}
			defer client.Close()
			info, err := client.Do("PROXY", "INFO")
			if err != nil {
				return err
			}
			var currentMasters []string
			for _, match := range masterAddrPattern.FindAllStringSubmatch(kit.ReplyText(info), -1) {
				currentMasters = append(currentMasters, match[1])
			}
			slices.Sort(currentMasters)
			if masters != nil && !slices.Equal(currentMasters, masters) {
				return fmt.Errorf("proxies have the masters %v and %v", masters, currentMasters)
			}
			masters = currentMasters
		}
		return nil
	})
	m.writeMasters(masters)
	if m.killedProxy >= 0 {
		m.proxies[m.killedProxy] = kit.StartConfigured(m.t, m.files[m.killedProxy])
	}
}

var changePattern = regexp.MustCompile(`the masters are being changed to (.+?): `)

// correctFiles does what the error of a proxy tells the operator: it writes the masters that the
// error names into all files. restoreProxies has written the former masters if a killed proxy began
// a change that the others had not yet seen.
func (m *randomRig) correctFiles(reply string) {
	m.t.Helper()
	if match := changePattern.FindStringSubmatch(reply); match != nil {
		m.writeMasters(strings.Split(match[1], ", "))
	}
}

// writeMasters writes the masters with these addresses into all files.
func (m *randomRig) writeMasters(addrs []string) {
	m.t.Helper()
	m.masters = slices.DeleteFunc(slices.Clone(m.servers),
		func(s *redistest.Server) bool { return !slices.Contains(addrs, s.Addr()) })
	if len(m.masters) != 5 {
		m.t.Fatalf("the masters are %v", addrs)
	}
	for i := range m.proxies {
		m.configure(i, m.masters)
	}
}

// wantAvailable waits until each proxy grants a lock, and returns the elapsed time.
func (m *randomRig) wantAvailable() time.Duration {
	m.t.Helper()
	startedAt := time.Now()
	for i, proxy := range m.proxies {
		client := kit.Connect(m.t, proxy)
		m.probeCount++
		// Each probe uses a new key, because the DEL of the last key may have failed.
		key := fmt.Sprint("lock:probe:", m.probeCount)
		kit.AwaitWithin(m.t, maxRecovery-time.Since(startedAt), func() error {
			if reply := kit.Do(m.t, client, "SET", key, "me", "NX", "PX", "60000"); reply != "OK" {
				m.correctFiles(kit.ReplyText(reply))
				return fmt.Errorf("proxy %d grants no lock: %v", i, reply)
			}
			kit.Do(m.t, client, "DEL", key)
			return nil
		})
	}
	return time.Since(startedAt)
}

var lockStoragePattern = regexp.MustCompile(`redlock_lock_storage:(\S+)`)

// checkOneLocation returns an error unless the proxies agree where the locks are stored, and no
// locks are left at the other location.
func (m *randomRig) checkOneLocation() error {
	location := ""
	for _, proxy := range m.proxies {
		match := lockStoragePattern.FindStringSubmatch(kit.ReplyText(kit.Do(m.t, kit.Connect(m.t, proxy), "PROXY", "INFO")))
		switch {
		case match == nil, match[1] != "upstream" && match[1] != "masters":
			return fmt.Errorf("a proxy says that the locks are at %q", match)
		case location != "" && location != match[1]:
			return fmt.Errorf("proxies say that the locks are at the %s and at the %s", location, match[1])
		}
		location = match[1]
	}
	return m.checkNoRemainingKeys(location == "upstream")
}
