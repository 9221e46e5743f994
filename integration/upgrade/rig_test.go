//go:build integration && history

package upgrade

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// rig holds five masters that lose no data, two proxies, and the clients of both.
type rig struct {
	t       *testing.T
	old     string
	masters []*redistest.Server
	proxies [2]*harness.Proxy
	addrs   [2]string
	// files has the paths of the proxies' configurations.
	files    [2]string
	upstream string
	random   *rand.Rand

	contests []*holdings.Contest
	mu       sync.Mutex
	unknown  map[string]int // NOQUORUM since the round began
	lost     []string
}

const clientsOfKey = 4

var keys = []string{"lock:a", "lock:b", "lock:c", "other"}

// startRig starts the masters of a version, and proxies of a program.
func startRig(t *testing.T, old string, seed uint64, version string) *rig {
	t.Helper()
	r := &rig{t: t, old: old, random: rand.New(rand.NewPCG(seed, 0)), unknown: map[string]int{}}
	for range 5 {
		r.masters = append(r.masters, redistest.New(t, redistest.Options{Version: version, InMemory: true,
			ExtraArgs: redistest.Durable()}))
	}
	upstream := kit.StartRedis(t)
	for i := range r.proxies {
		r.files[i] = filepath.Join(t.TempDir(), "config.yaml")
		r.upstream = upstream.URL()
		r.name(i, r.masters)
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
			who := &client{rig: r, contest: c, key: key, at: i % 2, random: rand.New(rand.NewPCG(seed,
				uint64(k*clientsOfKey+i+1)))}
			c.Enter(fmt.Sprintf("%s-%d", key, i), who.turn)
		}
	}
	return r
}

// name writes masters into the file of a proxy.
func (r *rig) name(proxy int, masters []*redistest.Server) {
	r.t.Helper()
	text := fmt.Sprintf("listen: 127.0.0.1:0\nfresh-start: true\nlock-keys: [\"lock:*\"]\nupstream: %s\nmax-ttl: 1m\nmaster: [%s]\n", r.upstream, strings.Join(redistest.URLs(masters), ", "))
	kit.Must(r.t, kit.ReplaceFile(r.files[proxy], text))
}

func (r *rig) start(i int, program string) {
	r.t.Helper()
	var args []string
	if r.addrs[i] != "" {
		args = []string{"--listen", r.addrs[i]}
	}
	proxy, err := harness.StartProxy(harness.ProxyOptions{Binary: program, Config: r.files[i], Args: args})
	kit.Must(r.t, err)
	r.proxies[i] = proxy
}

// forget discards the recorded NOQUORUM replies.
func (r *rig) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.unknown)
}

// wantSound fails the test if a lock was lost. If healthy is true, because no master was disturbed,
// it also fails the test if a client got NOQUORUM.
func (r *rig) wantSound(when string, healthy bool) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, times := range r.unknown {
		// A machine that stops for longer than the masters' time limit is no fault of the version.
		if healthy && !strings.Contains(what, "agreed only after") && !strings.Contains(what, "no answer in time") {
			r.t.Errorf("%s: %d × %s", when, times, what)
		}
	}
	for _, what := range r.lost {
		r.t.Errorf("%s: LOST: %s", when, what)
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

// client takes one lock repeatedly, through one proxy, or, while that is down, through the other.
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
	// slack is the tolerance for differences between clocks.
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
	give := []string{"EVAL",
		`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`, "1", c.key, token}
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

var (
	errNotAnswered = errors.New("it was not answered as it should be")
	errEnded       = errors.New("the connection ended")
)

func (c *client) do(words ...string) (reply any, err error) {
	if c.conn == nil {
		if c.conn, err = redistest.Dial(c.addrs[c.at], 10*time.Second); err != nil {
			c.conn, c.at = nil, 1-c.at
			return nil, err
		}
	}
	if reply, err = c.conn.Do(words...); err != nil {
		err = errEnded
	}
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
	time.Sleep(time.Duration(c.random.Int64N(int64(limit)))) // the pace of a client
}
