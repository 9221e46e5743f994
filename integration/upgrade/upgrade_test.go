//go:build integration && history

package upgrade

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { kit.Main(m) }

// roundsEnv is how many rounds there are with each version.
const roundsEnv = "REDLOCK_UPGRADES"

// earlier are the last versions of earlier protocols (marker.Protocol).
var earlier = []struct{ name, commit string }{
	{"protocol 0", "afe1ec79"},
	{"protocol 1", "9e3fb4f0"},
}

// build makes the program of a commit.
func build(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, dir)
	archive.Dir = "../.."
	out, err := archive.CombinedOutput()
	if _, is := os.Stat(filepath.Join(dir, "main.go")); err != nil || is != nil {
		t.Fatalf("commit %s is not to be had: %v\n%s", commit, err, out)
	}
	program := filepath.Join(dir, "redlock-proxy")
	compile := exec.Command("go", "build", "-o", program, ".")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("commit %s: %v\n%s", commit, err, out)
	}
	return program
}

// TestRollingUpgrades: two proxies of an earlier version are replaced by those of now, one after the other, and these by the earlier ones again, while clients
// lock through both. No lock is held twice or lost, and in rounds without another fault nobody is answered NOQUORUM.
func TestRollingUpgrades(t *testing.T) {
	rounds, seed := int(kit.NumberFrom(t, roundsEnv, 3)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d rounds (%s); seed %d (%s)", rounds, roundsEnv, seed, kit.SeedEnv)
	for _, version := range earlier {
		t.Run(version.name, func(t *testing.T) {
			r := startRig(t, build(t, version.commit), seed)
			for n := range rounds {
				r.round(n)
			}
			r.stop()
		})
	}
}

// rig is five masters that forget nothing, two proxies, and clients of both.
type rig struct {
	t       *testing.T
	old     string
	masters []*redistest.Server
	proxies [2]*harness.Proxy
	addrs   [2]string
	args    []string
	random  *rand.Rand

	contests []*holdings.Contest
	mu       sync.Mutex
	unknown  map[string]int // NOQUORUM since the round began
	lost     []string
}

const clientsOfKey = 4

var keys = []string{"lock:a", "lock:b", "lock:c", "other"}

func startRig(t *testing.T, old string, seed uint64) *rig {
	t.Helper()
	r := &rig{t: t, old: old, random: rand.New(rand.NewPCG(seed, 0)), unknown: map[string]int{}}
	for range 5 {
		r.masters = append(r.masters, redistest.New(t, redistest.Options{InMemory: true, ExtraArgs: redistest.Durable()}))
	}
	r.args = append(kit.LockKeyArgs(kit.StartRedis(t)), "--max-ttl", "1m")
	for i := range r.proxies {
		r.start(i, old)
		r.addrs[i] = r.proxies[i].Addr()
	}
	t.Cleanup(func() {
		for _, proxy := range r.proxies {
			kit.NoError(t, proxy.Close())
		}
	})
	for k, key := range keys {
		c := holdings.NewContest()
		r.contests = append(r.contests, c)
		for i := range clientsOfKey {
			who := &client{rig: r, contest: c, key: key, at: i % 2, random: rand.New(rand.NewPCG(seed, uint64(k*clientsOfKey+i+1)))}
			c.Enter(fmt.Sprintf("%s-%d", key, i), who.turn)
		}
	}
	return r
}

func (r *rig) start(i int, program string) {
	r.t.Helper()
	args := r.args
	if r.addrs[i] != "" {
		args = append(args[:len(args):len(args)], "--listen", r.addrs[i])
	}
	proxy, err := harness.StartProxy(harness.ProxyOptions{Binary: program, Masters: redistest.URLs(r.masters), Args: args})
	kit.Must(r.t, err)
	r.proxies[i] = proxy
}

// replace has a proxy be of another version: it drains, or is killed.
func (r *rig) replace(i int, program string, kill bool) {
	r.t.Helper()
	if kill {
		kit.Must(r.t, r.proxies[i].Close())
	} else {
		kit.Must(r.t, r.proxies[i].Signal(syscall.SIGTERM))
		_, err := r.proxies[i].Wait(time.Minute)
		kit.Must(r.t, err)
	}
	if log := r.proxies[i].Log(); strings.Contains(log, "panic: ") {
		r.t.Errorf("an accident:\n%s", log)
	}
	r.start(i, program)
}

// round is there and back, in every other round with a master that is away meanwhile.
func (r *rig) round(n int) {
	r.t.Helper()
	fault := []string{"", "a master is stopped", "", "a master is killed"}[n%4]
	master := r.masters[r.random.IntN(len(r.masters))]
	r.mu.Lock()
	clear(r.unknown)
	r.mu.Unlock()
	end := func() error { return nil }
	switch n % 4 {
	case 1:
		kit.Must(r.t, master.Pause())
		end = master.Continue
	case 3:
		kit.Must(r.t, master.Kill())
		end = master.Revive
	}
	first, last := r.random.IntN(2), 0
	now, err := harness.BuildProxy(r.t.Context())
	kit.Must(r.t, err)
	for step, program := range []string{now, now, r.old, r.old} {
		last = (first + step) % 2
		r.replace(last, program, fault != "" && r.random.IntN(2) == 0)
		time.Sleep(time.Duration(r.random.Int64N(int64(lease))))
		if step == 1 {
			kit.Must(r.t, end())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, times := range r.unknown {
		// A machine that stands still for longer than a round of masters may take has nothing to do with versions.
		if fault == "" && !strings.Contains(what, "agreed only after") && !strings.Contains(what, "no answer in time") {
			r.t.Errorf("round %d: %d × %s", n, times, what)
		}
	}
	for _, what := range r.lost {
		r.t.Errorf("round %d: LOST: %s", n, what)
	}
	r.lost = nil
}

func (r *rig) stop() {
	r.t.Helper()
	grants := 0
	for i, c := range r.contests {
		c.Stop()
		c.Report(r.t)
		grants += c.History.Count()
		if found := c.History.Overlaps(); len(found) > 0 {
			r.t.Errorf("%s: %d OVERLAPS in %d grants, such as: %v", keys[i], len(found), c.History.Count(), found[0])
		}
	}
	r.t.Logf("%d grants", grants)
	if grants < 10*len(keys) {
		r.t.Errorf("%d grants only", grants)
	}
}

// client wants one lock again and again, through one proxy, or the other where that is away.
type client struct {
	*rig
	contest *holdings.Contest
	key     string
	at      int
	conn    *redistest.Client
	random  *rand.Rand
}

const (
	lease = time.Second
	// slack is what clocks may count differently.
	slack = 50 * time.Millisecond
)

func (c *client) turn(token string) {
	sent := c.contest.History.Now()
	take := []string{"SET", c.key, token, "NX", "PX", kit.Millis(lease)}
	if c.key == "other" {
		take = []string{"LOCK", c.key, token, "PX", kit.Millis(lease)}
	}
	reply, err := c.do(take...)
	if err != nil || reply == nil {
		c.sleep(20 * time.Millisecond)
		return
	}
	received, until := c.contest.History.Now(), sent+lease-slack
	c.sleep(100 * time.Millisecond)
	give := []string{"EVAL", `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`, "1", c.key, token}
	if c.key == "other" {
		give = []string{"UNLOCK", c.key, token}
	}
	released := c.contest.History.Now()
	c.contest.Granted(holdings.Relied(token, received, until, released))
	given, err := c.do(give...)
	if after := c.contest.History.Now(); err == nil && given == int64(0) && after < until {
		c.mu.Lock()
		c.lost = append(c.lost, fmt.Sprintf("%s of %s was not there %v after it was granted", c.key, token, after-received))
		c.mu.Unlock()
	}
}

var errNotAnswered = errors.New("it was not answered as it should be")

func (c *client) do(words ...string) (reply any, err error) {
	if c.conn == nil {
		if c.conn, err = redistest.Dial(c.addrs[c.at], 10*time.Second); err != nil {
			c.conn, c.at = nil, 1-c.at
			return nil, err
		}
	}
	reply, err = c.conn.Do(words...)
	c.contest.Count(words[0], reply, err)
	failure, failed := reply.(redistest.RespError)
	if err != nil || failed {
		_ = c.conn.Close()
		c.conn, c.at = nil, 1-c.at
	}
	if failed {
		c.mu.Lock()
		c.unknown[words[0]+": "+string(failure)]++
		c.mu.Unlock()
		return nil, errNotAnswered
	}
	return reply, err
}

func (c *client) sleep(limit time.Duration) {
	time.Sleep(time.Duration(c.random.Int64N(int64(limit))))
}
