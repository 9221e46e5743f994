//go:build integration

package hostile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// replyTimeout limits the wait for a reply. It is long enough for a busy machine.
	replyTimeout = 30 * time.Second
	// defaultTime is the duration of the load without REDLOCK_HOSTILE.
	defaultTime = 30 * time.Second
	// maxRSS is the maximum memory of a proxy without the race detector, in bytes.
	maxRSS = 1 << 30
	// maxRaceRSS is the memory in bytes at which a proxy with the race detector is replaced. The
	// detector's own memory grows as long as the program runs.
	maxRaceRSS = 3 << 30
)

// fleet holds the attacked proxies and their servers.
type fleet struct {
	masters  []*redistest.Server
	upstream *redistest.Server
	members  []*attackedProxy
}

// addrs returns the addresses of the proxies.
func (f *fleet) addrs() (addrs []string) {
	for _, m := range f.members {
		addrs = append(addrs, m.proxy.Addr())
	}
	return addrs
}

// attackedProxy is a proxy that keeps its address when its process is replaced.
type attackedProxy struct {
	name            string
	binary          string
	hasRaceDetector bool
	proxy           *harness.Proxy
	peakRSS         int64 // maximum of the resident memory, in bytes
	replacements    int
}

// TestHostile runs all clients with two proxies. One proxy has the race detector. The other proxy
// does not have it, so it uses as much memory as a user's proxy.
func TestHostile(t *testing.T) {
	redistest.SkipShort(t)
	duration := defaultTime
	if text := os.Getenv("REDLOCK_HOSTILE"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	f := startFleet(t)
	l := newLockRecord()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	startedAt := time.Now()
	var honestClients sync.WaitGroup
	for i := range 8 {
		m := f.members[i%len(f.members)]
		addr := m.proxy.Addr()
		honestClients.Go(func() { runHonest(ctx, l, addr, fmt.Sprint("honest", i), m.name, !m.hasRaceDetector) })
	}
	sleep(ctx, duration/10) // first, measure replies without hostile clients
	p99Alone := l.p99()
	p99Harmless := f.measureP99(ctx, t, l, "harmless locks", duration/10)
	attackers, err := startAttackers(os.Getenv(kindsEnv), f.addrs()...)
	kit.Must(t, err)
	f.watch(ctx, cancel, t)
	honestClients.Wait()
	attackCounts, err := attackers.stop()
	kit.Must(t, err)
	t.Log(attackCounts)
	p99Hostile := l.p99()
	for command, before := range p99Alone {
		t.Logf("%s at the proxy without the race detector: p99 %v alone, %v beside harmless clients, %v beside hostile ones: %.2f times that alone, %.2f times that beside harmless ones",
			command, before, p99Harmless[command], p99Hostile[command], float64(p99Hostile[command])/float64(before),
			float64(p99Hostile[command])/float64(p99Harmless[command]))
	}
	t.Logf("%v: %d grants to honest clients, their errors %v", time.Since(startedAt).Round(time.Second), l.grants, l.errors)
	for _, violation := range l.violations {
		t.Error(violation)
	}
	if l.grants < 10 {
		t.Errorf("only %d grants: the test does not tell much", l.grants)
	}
	for _, m := range f.members {
		m.wantHealthy(t)
	}
}

// measureP99 returns the p99 of replies to honest clients while clients of the given kind run.
func (f *fleet) measureP99(ctx context.Context, t *testing.T, l *lockRecord, kind string, duration time.Duration) map[string]time.Duration {
	t.Helper()
	clients, err := startAttackers(kind, f.addrs()...)
	kit.Must(t, err)
	sleep(ctx, duration/10)
	l.p99()
	sleep(ctx, duration)
	p99 := l.p99()
	_, err = clients.stop()
	kit.Must(t, err)
	return p99
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// startFleet starts a fleet of two proxies. One proxy has the race detector, and exits at the first
// race.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	return startMembers(t, &attackedProxy{name: "with the race detector", binary: buildWithRaceDetector(t), hasRaceDetector: true},
		&attackedProxy{name: "without it"})
}

func startMembers(t *testing.T, members ...*attackedProxy) *fleet {
	t.Helper()
	f := &fleet{masters: kit.StartMasters(t), upstream: kit.StartRedis(t), members: members}
	for _, m := range f.members {
		kit.Must(t, f.startProxy(m, "127.0.0.1:0"))
		t.Cleanup(func() { _ = m.proxy.Close() })
	}
	return f
}

// startProxy starts the process of a proxy, which listens on the given address.
func (f *fleet) startProxy(m *attackedProxy, listen string) (err error) {
	m.proxy, err = harness.StartProxy(harness.ProxyOptions{
		Binary: m.binary, Masters: redistest.URLs(f.masters), Env: []string{"GORACE=halt_on_error=1"},
		StartTimeout: 2 * replyTimeout,
		Args: []string{"--upstream", f.upstream.URL(), "--lock-keys", "lock:*", "--max-clients", "1000",
			"--listen", listen},
	})
	return err
}

// replace stops a proxy, as an operator would, and starts a new process.
func (f *fleet) replace(t *testing.T, m *attackedProxy) error {
	m.wantQuietLog(t)
	m.replacements++
	if err := m.proxy.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if code, err := m.proxy.Wait(2 * replyTimeout); err != nil || code != 0 {
		return fmt.Errorf("it ended with %d, %w", code, err)
	}
	return f.startProxy(m, m.proxy.Addr())
}

// buildWithRaceDetector builds the proxy with the race detector.
func buildWithRaceDetector(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redlock-proxy")
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", path, "redlock-proxy")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if output, err := build.CombinedOutput(); err != nil {
		redistest.SkipMissing(t, fmt.Sprintf("the race detector: %v\n%s", err, output))
	}
	return path
}

// watch samples the memory of the proxies until ctx ends, and logs the maximum once a minute. If a
// proxy ends, watch fails the test and ends the load.
func (f *fleet) watch(ctx context.Context, end func(), t *testing.T) {
	t.Helper()
	tick, lastLog := time.NewTicker(500*time.Millisecond), time.Now()
	defer tick.Stop()
	for {
		for _, m := range f.members {
			if err := f.sample(t, m); err != nil {
				t.Errorf("the proxy %s: %v", m.name, err)
				end()
			}
		}
		if time.Since(lastLog) > time.Minute {
			t.Logf("%v: peak RSS %d and %d MB", time.Now().Format(time.TimeOnly), f.members[0].peakRSS>>20,
				f.members[1].peakRSS>>20)
			lastLog = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *fleet) sample(t *testing.T, m *attackedProxy) error {
	rss, err := m.proxy.RSS()
	m.peakRSS = max(m.peakRSS, rss)
	if err == nil && m.hasRaceDetector && rss > maxRaceRSS {
		return f.replace(t, m)
	}
	return err
}

// wantHealthy fails the test unless the proxy runs and serves clients as before.
func (m *attackedProxy) wantHealthy(t *testing.T) {
	t.Helper()
	t.Logf("the proxy %s: peak RSS %d MB, replaced %d times", m.name, m.peakRSS>>20, m.replacements)
	m.wantQuietLog(t)
	if !m.hasRaceDetector && m.peakRSS > maxRSS {
		t.Errorf("it took %d MB", m.peakRSS>>20)
	}
	if _, err := m.proxy.RSS(); err == nil {
		wantServed(t, m.proxy)
	}
}

// wantQuietLog fails the test if the log shows a race, a panic or another serious error.
func (m *attackedProxy) wantQuietLog(t *testing.T) {
	t.Helper()
	log := m.proxy.Log()
	for _, text := range []string{"DATA RACE", "panic", "internal error", "fatal error", "too many open files"} {
		if position := strings.Index(log, text); position >= 0 {
			t.Errorf("the proxy %s: %s", m.name, log[max(0, position-500):min(len(log), position+4000)])
		}
	}
}

// wantServed waits until the ordinary ways to lock work again. The proxy first executes the hostile
// commands that have arrived. If a proxy does not reply, wantServed prints the proxy's goroutines.
func wantServed(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	startedAt := time.Now()
	cpuBefore, _ := proxy.CPU()
	err := checkServed(proxy)
	for ; err != nil && time.Since(startedAt) < 4*replyTimeout; err = checkServed(proxy) {
		t.Log("not yet:", err)
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil {
		cpuAfter, _ := proxy.CPU()
		t.Logf("%s: served as before %v after the load, and %v of CPU", proxy.Addr(),
			time.Since(startedAt).Round(time.Millisecond), cpuAfter-cpuBefore)
		return
	}
	_ = proxy.Signal(syscall.SIGQUIT)
	_, _ = proxy.Wait(replyTimeout)
	t.Errorf("%v; the proxy:\n%s", err, proxy.Log())
}

// checkServed sends commands of all kinds on a new connection, and returns the first error.
func checkServed(proxy *harness.Proxy) error {
	client, err := redistest.Dial(proxy.Addr(), replyTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, words := range [][]string{{"LOCK", "after", "t", "PX", "1000"}, {"UNLOCK", "after", "t"}, {"GET", "after"},
		{"EVAL", releaseScript, "1", "lock:after", "t"}} {
		reply, err := client.Do(words...)
		if refusal, isError := reply.(redistest.RespError); err != nil || isError {
			return fmt.Errorf("%v: %v %w", words, refusal, err)
		}
	}
	return nil
}
