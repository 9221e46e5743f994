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
	// patience limits waits. It does not decide a result.
	patience = 30 * time.Second
	// defaultTime is the duration of the load without REDLOCK_HOSTILE.
	defaultTime = 30 * time.Second
	// maxRSS is the maximum memory of a proxy without the race detector, in bytes.
	maxRSS = 1 << 30
	// maxRaceRSS is the memory at which a proxy with the race detector is replaced, in bytes: the
	// detector's own memory grows as long as the program runs.
	maxRaceRSS = 3 << 30
)

// fleet holds the attacked proxies and their servers.
type fleet struct {
	masters  []*redistest.Server
	upstream *redistest.Server
	members  []*member
}

// addrs returns the addresses of the members.
func (f *fleet) addrs() (addrs []string) {
	for _, m := range f.members {
		addrs = append(addrs, m.proxy.Addr())
	}
	return addrs
}

// member is one of the proxies, always with the same address.
type member struct {
	name     string
	binary   string
	raced    bool
	proxy    *harness.Proxy
	peak     int64 // of the resident memory, in bytes
	replaced int
}

// TestHostile runs the whole load on a proxy under the race detector, and on one without it, whose
// memory is like a user's proxy.
func TestHostile(t *testing.T) {
	redistest.SkipShort(t)
	last := defaultTime
	if text := os.Getenv("REDLOCK_HOSTILE"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	f := start(t)
	l := newLedger()
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	began := time.Now()
	var running sync.WaitGroup
	for i := range 8 {
		m := f.members[i%len(f.members)]
		addr := m.proxy.Addr()
		running.Go(func() { honest(ctx, l, addr, fmt.Sprint("honest", i), m.name, !m.raced) })
	}
	sleep(ctx, last/10) // first, measure replies without hostile clients
	alone := l.p99()
	busy := f.beside(ctx, t, l, "harmless locks", last/10)
	hostile, err := startAttackers(os.Getenv(chosenVariable), f.addrs()...)
	kit.Must(t, err)
	f.watch(ctx, cancel, t)
	running.Wait()
	attacked, err := hostile.stop()
	kit.Must(t, err)
	t.Log(attacked)
	beside := l.p99()
	for what, before := range alone {
		t.Logf("%s at the proxy without the race detector: p99 %v alone, %v beside harmless clients, %v beside hostile ones: %.2f times that alone, %.2f times that beside harmless ones",
			what, before, busy[what], beside[what], float64(beside[what])/float64(before),
			float64(beside[what])/float64(busy[what]))
	}
	t.Logf("%v: %d grants to honest clients, their errors %v", time.Since(began).Round(time.Second), l.grants, l.errors)
	for _, wrong := range l.wrong {
		t.Error(wrong)
	}
	if l.grants < 10 {
		t.Errorf("only %d grants: the test does not tell much", l.grants)
	}
	for _, m := range f.members {
		m.wantWell(t)
	}
}

// beside returns the p99 of replies to honest clients while other clients of a kind run.
func (f *fleet) beside(ctx context.Context, t *testing.T, l *ledger, kind string, last time.Duration) map[string]time.Duration {
	t.Helper()
	others, err := startAttackers(kind, f.addrs()...)
	kit.Must(t, err)
	sleep(ctx, last/10)
	l.p99()
	sleep(ctx, last)
	found := l.p99()
	_, err = others.stop()
	kit.Must(t, err)
	return found
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// start starts a fleet of two proxies. One has the race detector, and exits at the first race.
func start(t *testing.T) *fleet {
	t.Helper()
	return startMembers(t, &member{name: "with the race detector", binary: buildRace(t), raced: true},
		&member{name: "without it"})
}

func startMembers(t *testing.T, members ...*member) *fleet {
	t.Helper()
	f := &fleet{masters: kit.StartMasters(t), upstream: kit.StartRedis(t), members: members}
	for _, m := range f.members {
		kit.Must(t, f.run(m, "127.0.0.1:0"))
		t.Cleanup(func() { _ = m.proxy.Close() })
	}
	return f
}

// run starts a member's proxy at an address.
func (f *fleet) run(m *member, listen string) (err error) {
	m.proxy, err = harness.StartProxy(harness.ProxyOptions{
		Binary: m.binary, Masters: redistest.URLs(f.masters), Env: []string{"GORACE=halt_on_error=1"},
		StartTimeout: 2 * patience,
		Args: []string{"--upstream", f.upstream.URL(), "--lock-keys", "lock:*", "--max-clients", "1000",
			"--listen", listen},
	})
	return err
}

// replace stops a member's proxy, as an operator would, and starts a new one.
func (f *fleet) replace(t *testing.T, m *member) error {
	m.wantQuietLog(t)
	m.replaced++
	if err := m.proxy.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if code, err := m.proxy.Wait(2 * patience); err != nil || code != 0 {
		return fmt.Errorf("it ended with %d, %w", code, err)
	}
	return f.run(m, m.proxy.Addr())
}

// buildRace builds the proxy with the race detector.
func buildRace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redlock-proxy")
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", path, "redlock-proxy")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if output, err := build.CombinedOutput(); err != nil {
		redistest.SkipMissing(t, fmt.Sprintf("the race detector: %v\n%s", err, output))
	}
	return path
}

// watch samples the memory until ctx ends, and logs it once a minute. If a proxy ends, it ends the
// test.
func (f *fleet) watch(ctx context.Context, end func(), t *testing.T) {
	t.Helper()
	tick, tell := time.NewTicker(500*time.Millisecond), time.Now()
	defer tick.Stop()
	for {
		for _, m := range f.members {
			if err := f.sample(t, m); err != nil {
				t.Errorf("the proxy %s: %v", m.name, err)
				end()
			}
		}
		if time.Since(tell) > time.Minute {
			t.Logf("%v: peak RSS %d and %d MB", time.Now().Format(time.TimeOnly), f.members[0].peak>>20,
				f.members[1].peak>>20)
			tell = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *fleet) sample(t *testing.T, m *member) error {
	rss, err := m.proxy.RSS()
	m.peak = max(m.peak, rss)
	if err == nil && m.raced && rss > maxRaceRSS {
		return f.replace(t, m)
	}
	return err
}

// wantWell fails the test unless the proxy runs and serves clients as before.
func (m *member) wantWell(t *testing.T) {
	t.Helper()
	t.Logf("the proxy %s: peak RSS %d MB, replaced %d times", m.name, m.peak>>20, m.replaced)
	m.wantQuietLog(t)
	if !m.raced && m.peak > maxRSS {
		t.Errorf("it took %d MB", m.peak>>20)
	}
	if _, err := m.proxy.RSS(); err == nil {
		wantServed(t, m.proxy)
	}
}

// wantQuietLog fails the test if the log shows a race, a panic or another serious error.
func (m *member) wantQuietLog(t *testing.T) {
	t.Helper()
	log := m.proxy.Log()
	for _, sign := range []string{"DATA RACE", "panic", "session failed", "fatal error", "too many open files"} {
		if at := strings.Index(log, sign); at >= 0 {
			t.Errorf("the proxy %s: %s", m.name, log[max(0, at-500):min(len(log), at+4000)])
		}
	}
}

// wantServed waits until the ordinary ways to lock work again. Hostile commands that have arrived
// are executed first. If a proxy does not reply, wantServed prints the proxy's goroutines.
func wantServed(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	began := time.Now()
	before, _ := proxy.CPU()
	err := checkServed(proxy)
	for ; err != nil && time.Since(began) < 4*patience; err = checkServed(proxy) {
		t.Log("not yet:", err)
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil {
		after, _ := proxy.CPU()
		t.Logf("%s: served as before %v after the load, and %v of CPU", proxy.Addr(),
			time.Since(began).Round(time.Millisecond), after-before)
		return
	}
	_ = proxy.Signal(syscall.SIGQUIT)
	_, _ = proxy.Wait(patience)
	t.Errorf("%v; the proxy:\n%s", err, proxy.Log())
}

// checkServed sends commands of all kinds on a new connection, and returns the first error.
func checkServed(proxy *harness.Proxy) error {
	client, err := redistest.Dial(proxy.Addr(), patience)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, words := range [][]string{{"LOCK", "after", "t", "PX", "1000"}, {"UNLOCK", "after", "t"}, {"GET", "after"},
		{"EVAL", release, "1", "lock:after", "t"}} {
		reply, err := client.Do(words...)
		if refusal, isError := reply.(redistest.RespError); err != nil || isError {
			return fmt.Errorf("%v: %v %w", words, refusal, err)
		}
	}
	return nil
}
