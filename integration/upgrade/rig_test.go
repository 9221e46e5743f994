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
	t          *testing.T
	oldProgram string
	masters    []*redistest.Server
	proxies    [2]*harness.Proxy
	addrs      [2]string
	// configFiles holds the paths of the proxies' configurations.
	configFiles [2]string
	upstream    string
	random      *rand.Rand

	contests     []*holdings.Contest
	mu           sync.Mutex
	errorReplies map[string]int // error replies since the round began
	lostLocks    []string
}

const clientsPerKey = 4

var keys = []string{"lock:a", "lock:b", "lock:c", "other"}

// startRig starts masters of a version, proxies with the program oldProgram, and clients.
func startRig(t *testing.T, oldProgram string, seed uint64, version string) *rig {
	t.Helper()
	r := &rig{t: t, oldProgram: oldProgram, random: rand.New(rand.NewPCG(seed, 0)), errorReplies: map[string]int{}}
	for range 5 {
		r.masters = append(r.masters, redistest.New(t, redistest.Options{Version: version, InMemory: true,
			ExtraArgs: redistest.DurableArgs()}))
	}
	upstream := kit.StartRedis(t)
	for i := range r.proxies {
		r.configFiles[i] = filepath.Join(t.TempDir(), "config.yaml")
		r.upstream = upstream.URL()
		r.writeConfig(i, r.masters)
		r.startProxy(i, oldProgram)
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
		for i := range clientsPerKey {
			member := &client{rig: r, contest: c, key: key, proxyIndex: i % 2, random: rand.New(rand.NewPCG(seed,
				uint64(k*clientsPerKey+i+1)))}
			c.AddClient(fmt.Sprintf("%s-%d", key, i), member.lockOnce)
		}
	}
	return r
}

// writeConfig writes masters into the file of a proxy.
func (r *rig) writeConfig(proxy int, masters []*redistest.Server) {
	r.t.Helper()
	text := fmt.Sprintf("listen: 127.0.0.1:0\nfresh-start: true\nlock-keys: [\"lock:*\"]\nupstream: %s\nmax-ttl: 1m\nmaster: [%s]\n", r.upstream, strings.Join(redistest.URLs(masters), ", "))
	kit.Must(r.t, kit.ReplaceFile(r.configFiles[proxy], text))
}

func (r *rig) startProxy(i int, program string) {
	r.t.Helper()
	var args []string
	if r.addrs[i] != "" {
		args = []string{"--listen", r.addrs[i]}
	}
	proxy, err := harness.StartProxy(harness.ProxyOptions{Binary: program, Config: r.configFiles[i], Args: args})
	kit.Must(r.t, err)
	r.proxies[i] = proxy
}

// clearErrorReplies discards the recorded error replies.
func (r *rig) clearErrorReplies() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.errorReplies)
}

// wantNoLoss fails the test if a lock was lost. If healthy is true, no master was disturbed. Then
// wantNoLoss also fails the test if a client got an error reply, such as NOQUORUM.
func (r *rig) wantNoLoss(moment string, healthy bool) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for reply, times := range r.errorReplies {
		// A machine that stops for longer than the masters' time limit is no fault of the version.
		if healthy && !strings.Contains(reply, "agreed only after") && !strings.Contains(reply, "no answer in time") {
			r.t.Errorf("%s: %d × %s", moment, times, reply)
		}
	}
	for _, text := range r.lostLocks {
		r.t.Errorf("%s: LOST: %s", moment, text)
	}
	r.lostLocks = nil
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

// client takes one lock repeatedly through one proxy. After each error, it changes to the other
// proxy.
type client struct {
	*rig
	contest    *holdings.Contest
	key        string
	proxyIndex int
	conn       *redistest.Client
	random     *rand.Rand
}

const (
	lockTTL = time.Second
	// clockTolerance is the tolerance for differences between clocks.
	clockTolerance = 50 * time.Millisecond
)

func (c *client) lockOnce(token string) {
	sent := c.contest.History.Now()
	lock := []string{"SET", c.key, token, "NX", "PX", kit.Millis(lockTTL)}
	if c.key == "other" {
		lock = []string{"LOCK", c.key, token, "PX", kit.Millis(lockTTL)}
	}
	reply, err := c.do(lock...)
	if err != nil || reply == nil {
		c.sleep(20 * time.Millisecond)
		return
	}
	received, until := c.contest.History.Now(), sent+lockTTL-clockTolerance
	c.sleep(100 * time.Millisecond)
	unlock := []string{"EVAL",
		`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`, "1", c.key, token}
	if c.key == "other" {
		unlock = []string{"UNLOCK", c.key, token}
	}
	released := c.contest.History.Now()
	c.contest.AddHolding(holdings.NewHolding(token, received, until, released))
	reply, err = c.do(unlock...)
	if after := c.contest.History.Now(); err == nil && reply == int64(0) && after < until {
		c.mu.Lock()
		c.lostLocks = append(c.lostLocks, fmt.Sprintf("%s of %s was not there %v after it was granted", c.key, token, after-received))
		c.mu.Unlock()
	}
}

var (
	errErrorReply     = errors.New("it was not answered as it should be")
	errConnectionLost = errors.New("the connection ended")
)

func (c *client) do(words ...string) (reply any, err error) {
	if c.conn == nil {
		if c.conn, err = redistest.Dial(c.addrs[c.proxyIndex], 10*time.Second); err != nil {
			c.conn, c.proxyIndex = nil, 1-c.proxyIndex
			return nil, err
		}
	}
	if reply, err = c.conn.Do(words...); err != nil {
		err = errConnectionLost
	}
	c.contest.CountReply(words[0], reply, err)
	failure, failed := reply.(redistest.RespError)
	if err != nil || failed {
		_ = c.conn.Close()
		c.conn, c.proxyIndex = nil, 1-c.proxyIndex
	}
	if failed {
		c.mu.Lock()
		c.errorReplies[words[0]+": "+string(failure)]++
		c.mu.Unlock()
		return nil, errErrorReply
	}
	return reply, err
}

func (c *client) sleep(limit time.Duration) {
	time.Sleep(time.Duration(c.random.Int64N(int64(limit)))) // sets the pace of a client
}
