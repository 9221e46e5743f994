//go:build integration

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

const (
	masterCount = 5
	proxyCount  = 3
	// majority is how many masters make one.
	majority = masterCount/2 + 1
	// patience bounds one command of a client, and longPatience one of the test to a server that must answer.
	patience     = time.Second
	longPatience = 10 * time.Second
)

// master is a server that forgets nothing when it is killed, has a clock of its own, and is reached over links: one of each proxy, and
// the last one of redsync.
type master struct {
	*redistest.Server
	clock string // the file that says by how much it is ahead
	steps int    // by how many steps it is, but for one
	links []*faultlink.Link
	copy  string // what its directory once was
}

// proxy is one that comes back under the same address.
type proxy struct {
	process *harness.Proxy
	addr    string
	masters []string
	args    []string
}

// cluster is all servers.
type cluster struct {
	masters []*master
	proxies []*proxy
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c, library := &cluster{}, fakeTime(t)
	for range masterCount {
		c.masters = append(c.masters, startMaster(t, library))
	}
	upstream := kit.StartRedis(t)
	for i := range proxyCount {
		c.proxies = append(c.proxies, c.startProxy(t, i, upstream))
	}
	c.awaitVotes(t)
	return c
}

// awaitVotes waits until all masters vote.
func (c *cluster) awaitVotes(t *testing.T) {
	t.Helper()
	for _, proxy := range c.proxies {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			votes, err := proxy.voting()
			voting := 0
			for _, votes := range votes {
				if votes {
					voting++
				}
			}
			if voting == masterCount {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d masters vote: %v\n%s", voting, err, c.told())
			}
		}
	}
}

// told is what each proxy says of the masters, and the end of its log.
func (c *cluster) told() string {
	var text strings.Builder
	for i, proxy := range c.proxies {
		info, err := ask(proxy.addr, "PROXY", "INFO")
		log := proxy.process.Log()
		fmt.Fprintf(&text, "proxy %d: %v %v\n%s\n", i, info, err, log[max(0, len(log)-4<<10):])
	}
	return text.String()
}

// fakeTime is the library that gives a server a clock of its own.
func fakeTime(t *testing.T) string {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	kit.Must(t, err)
	if len(libraries) == 0 {
		redistest.Absent(t, "libfaketime: apt-get install libfaketime")
	}
	return libraries[0]
}

// startMaster starts one whose clock is right. The C library's malloc comes before jemalloc's, which asks for the time while libfaketime
// is not ready yet. The monotonic clock stays true, as it does where somebody sets the time.
func startMaster(t *testing.T, library string) *master {
	t.Helper()
	m := &master{clock: filepath.Join(t.TempDir(), "clock"), steps: 1, copy: filepath.Join(t.TempDir(), "copy")}
	kit.Must(t, m.step(0))
	m.Server = redistest.New(t, redistest.Options{InMemory: true, ExtraArgs: redistest.Durable(), Env: []string{
		"LD_PRELOAD=" + library + " libc.so.6", "FAKETIME_TIMESTAMP_FILE=" + m.clock, "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}})
	for range proxyCount + 1 {
		m.links = append(m.links, kit.StartLink(t, m.Server))
	}
	return m
}

func (c *cluster) startProxy(t *testing.T, number int, upstream *redistest.Server) *proxy {
	t.Helper()
	addr, err := redistest.FreeAddr()
	kit.Must(t, err)
	p := &proxy{addr: addr, args: []string{"--listen", addr, "--lock-keys", "lock:*", "--upstream", upstream.URL()}}
	for _, master := range c.masters {
		p.masters = append(p.masters, "redis://"+master.links[number].Addr())
	}
	kit.Must(t, p.start())
	p.args = append(p.args, "--fresh-start=false") // when it comes back
	t.Cleanup(func() {
		kit.NoError(t, p.process.Close())
		if log := p.process.Log(); strings.Contains(log, "panic: ") || strings.Contains(log, "a session failed") {
			t.Errorf("an accident in the log of the proxy on %s:\n%s", p.addr, log)
		}
	})
	return p
}

func (p *proxy) start() (err error) {
	p.process, err = harness.StartProxy(harness.ProxyOptions{Masters: p.masters, Args: p.args})
	return err
}

// step sets the master's clock, which it notices within a second.
func (m *master) step(ahead time.Duration) error {
	if err := os.WriteFile(m.clock+".new", fmt.Appendf(nil, "%+d\n", int(ahead.Seconds())), 0o600); err != nil {
		return err
	}
	return os.Rename(m.clock+".new", m.clock)
}

// keepCopy keeps the master's data as they are now.
func (m *master) keepCopy() error {
	if err := os.RemoveAll(m.copy); err != nil {
		return err
	}
	return os.CopyFS(m.copy, os.DirFS(m.Dir()))
}

// setBack starts a killed master with the data that were kept. Where the copy was made at a bad moment it starts without any.
func (m *master) setBack() error {
	files := filepath.Join(m.Dir(), "appendonlydir")
	if err := os.RemoveAll(files); err != nil {
		return err
	}
	if err := os.CopyFS(files, os.DirFS(filepath.Join(m.copy, "appendonlydir"))); err != nil {
		return err
	}
	if m.Revive() == nil {
		return nil
	}
	return m.Restart()
}

// ask sends one command to a server that must answer; an error reply is an error.
func ask(addr string, command ...string) (any, error) {
	return askWithin(longPatience, addr, command...)
}

// askWithin is the same with a server that may not.
func askWithin(limit time.Duration, addr string, command ...string) (any, error) {
	client, err := redistest.Dial(addr, limit)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	reply, err := client.Do(command...)
	if failure, bad := reply.(redistest.RespError); bad {
		return nil, failure
	}
	return reply, err
}

var statePattern = regexp.MustCompile(`redlock_master(\d+):[^\r\n]*\bstate=(\w+)`)

// voting tells which masters vote, as a proxy sees it.
func (p *proxy) voting() (map[int]bool, error) {
	info, err := askWithin(patience, p.addr, "PROXY", "INFO")
	if err != nil {
		return nil, err
	}
	votes := map[int]bool{}
	for _, match := range statePattern.FindAllStringSubmatch(fmt.Sprint(info), -1) {
		votes[int(match[1][0]-'0')] = match[2] == "voting"
	}
	return votes, nil
}
