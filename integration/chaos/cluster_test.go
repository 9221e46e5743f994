//go:build integration

package chaos

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

const (
	masterCount = 5
	proxyCount  = 3
	// majority is the number of masters in a majority.
	majority = masterCount/2 + 1
	// replyTimeout limits one command of a client. longReplyTimeout limits one command of the test
	// to a server that must reply.
	replyTimeout     = time.Second
	longReplyTimeout = 10 * time.Second
)

// master is a server that writes all data to disk and has a clock of its own. Each proxy has a link
// to it. redsync has one, too, unless the master is the spare server.
type master struct {
	*redistest.Server
	name      string // name by which all proxies know it
	clockFile string // file with the time by which its clock is ahead of the machine's clock
	clockStep int    // setting of the clock; 0: behind, 1: right, 2: ahead
	links     []*faultlink.Link
	copyDir   string // directory with an older copy of its data
}

// proxy is a proxy that restarts with the same address.
type proxy struct {
	process    *harness.Proxy
	addr       string
	adminAddr  string // address of its status page
	configText string // text of its configuration, except the masters
	configPath string // path of its complete configuration file
	binary     string
	args       []string
}

// cluster holds all servers.
type cluster struct {
	proxies        []*proxy
	foreignDataDir string // directory with the data of a master of another cluster

	mu             sync.Mutex
	currentMasters [masterCount]*master // the proxies' masters
	spareMaster    *master
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c, library := &cluster{foreignDataDir: makeForeignData(t)}, fakeTime(t)
	for i := range c.currentMasters {
		c.currentMasters[i] = startMaster(t, library)
		c.currentMasters[i].links = append(c.currentMasters[i].links, kit.StartLink(t, c.currentMasters[i].Server))
	}
	c.spareMaster = startMaster(t, library)
	upstream := kit.StartRedis(t)
	for i := range proxyCount {
		c.proxies = append(c.proxies, c.startProxy(t, i, upstream))
	}
	c.awaitVotes(t)
	return c
}

// masters returns the masters of the proxies, or the new masters during a change.
func (c *cluster) masters() []*master {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.currentMasters[:])
}

// awaitVotes waits until all masters vote.
func (c *cluster) awaitVotes(t *testing.T) {
	t.Helper()
	for _, proxy := range c.proxies {
		for end := time.Now().Add(2 * kit.WaitLimit); ; time.Sleep(10 * time.Millisecond) {
			states, err := proxy.masterStates(c.masters())
			votingCount := 0
			for _, state := range states {
				if state == stateVoting {
					votingCount++
				}
			}
			if votingCount == masterCount {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d masters vote: %v\n%s", votingCount, err, c.describe())
			}
		}
	}
}

// describe returns the masters' guard keys, the proxies' PROXY INFO, and the ends of their logs.
func (c *cluster) describe() string {
	var text strings.Builder
	for i, m := range c.masters() {
		stored, err := do(m.Addr(), "MGET", script.MarkerKey, script.RecordKey, script.RulesKey)
		fmt.Fprintf(&text, "master %d, %s: %q %v\n", i, m.name, stored, err)
	}
	for i, proxy := range c.proxies {
		info, err := do(proxy.addr, "PROXY", "INFO")
		log := proxy.process.Log()
		fmt.Fprintf(&text, "proxy %d: %v %v\n%s\n", i, info, err, log[max(0, len(log)-64<<10):])
	}
	return text.String()
}

// fakeTime returns the path of the library that gives a server a clock of its own.
func fakeTime(t *testing.T) string {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	kit.Must(t, err)
	if len(libraries) == 0 {
		redistest.SkipMissing(t, "libfaketime: apt-get install libfaketime")
	}
	return libraries[0]
}

// startMaster starts a master whose clock shows the machine's time. It loads the C library's malloc
// before jemalloc's, which asks for the time before libfaketime is ready. The monotonic clock is
// not affected, as when an operator sets the time.
func startMaster(t *testing.T, library string) *master {
	t.Helper()
	m := &master{clockFile: filepath.Join(t.TempDir(), "clock"), clockStep: 1, copyDir: filepath.Join(t.TempDir(), "copy")}
	kit.Must(t, m.setClock(0))
	m.Server = redistest.New(t, redistest.Options{InMemory: true, ExtraArgs: redistest.DurableArgs(), Env: []string{
		"LD_PRELOAD=" + library + " libc.so.6", "FAKETIME_TIMESTAMP_FILE=" + m.clockFile, "FAKETIME_CACHE_DURATION=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
	}})
	addr, err := redistest.FreeAddr()
	kit.Must(t, err)
	_, port, err := net.SplitHostPort(addr)
	kit.Must(t, err)
	for number := range proxyCount {
		link, err := faultlink.NewAt(net.JoinHostPort(proxyHost(number), port), m.Addr())
		kit.Must(t, err)
		t.Cleanup(func() { kit.NoError(t, link.Close()) })
		m.links = append(m.links, link)
	}
	m.name = net.JoinHostPort(mastersHost, port)
	return m
}

// mastersHost is the host name of all masters. Each proxy resolves it differently. So all proxies
// know a master by the same name, as changes of the masters require, and each proxy uses its own
// link.
const mastersHost = "masters.test"

// proxyHost returns the address of mastersHost for a proxy.
func proxyHost(number int) string { return fmt.Sprintf("127.0.2.%d", number+1) }

// proxyBinary returns the program of a proxy that has a hosts file of its own.
func proxyBinary(t *testing.T, number int) string {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	kit.Must(t, err)
	dir := t.TempDir()
	hosts, script := filepath.Join(dir, "hosts"), filepath.Join(dir, "redlock-proxy")
	kit.Must(t, os.WriteFile(hosts, fmt.Appendf(nil, "127.0.0.1 localhost\n%s %s\n", proxyHost(number), mastersHost), 0o600))
	kit.Must(t, os.WriteFile(script, fmt.Appendf(nil,
		"#!/bin/sh\nexec unshare --mount sh -c 'mount --bind %s /etc/hosts && exec %s \"$@\"' sh \"$@\"\n", hosts,
		program), 0o700))
	return script
}

func (c *cluster) startProxy(t *testing.T, number int, upstream *redistest.Server) *proxy {
	t.Helper()
	addr, err := redistest.FreeAddr()
	kit.Must(t, err)
	admin, err := redistest.FreeAddr()
	kit.Must(t, err)
	p := &proxy{
		addr: addr, adminAddr: admin, binary: proxyBinary(t, number), configPath: filepath.Join(t.TempDir(), "config.yaml"),
		args:       []string{"--fresh-start"},
		configText: fmt.Sprintf("listen: %s\nadmin: %s\nlock-keys: [\"lock:*\"]\nupstream: %s\n", addr, admin, upstream.URL()),
	}
	kit.Must(t, p.configure(c.masters()))
	kit.Must(t, p.start())
	p.args = append(p.args, "--fresh-start=false") // when the proxy restarts
	t.Cleanup(func() {
		kit.NoError(t, p.process.Close())
		if log := p.process.Log(); strings.Contains(log, "panic: ") || strings.Contains(log, "internal error") {
			t.Errorf("an accident in the log of the proxy on %s:\n%s", p.addr, log)
		}
	})
	return p
}

func (p *proxy) start() (err error) {
	p.process, err = harness.StartProxy(harness.ProxyOptions{Binary: p.binary, Config: p.configPath, Args: p.args})
	return err
}

// configure writes these masters into the proxy's configuration file.
func (p *proxy) configure(masters []*master) error {
	text := p.configText + "master:\n"
	for _, m := range masters {
		text += "  - redis://" + m.name + "\n"
	}
	return kit.ReplaceFile(p.configPath, text)
}

// makeForeignData returns a directory with the data of a master of another cluster. That cluster's
// masters were changed once.
func makeForeignData(t *testing.T) string {
	t.Helper()
	var servers []*redistest.Server
	for range 4 {
		servers = append(servers, redistest.New(t, redistest.Options{InMemory: true, ExtraArgs: redistest.DurableArgs()}))
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	writeConfig := func(last *redistest.Server) {
		text := fmt.Sprintf("listen: 127.0.0.1:0\nfresh-start: true\nmaster-timeout: 5s\nmaster: [%s, %s, %s]\n", servers[0].URL(),
			servers[1].URL(), last.URL())
		kit.Must(t, os.WriteFile(config, []byte(text), 0o600))
	}
	writeConfig(servers[2])
	proxy := kit.StartConfigured(t, config)
	client := kit.Connect(t, proxy)
	for _, key := range numberedKeys("lock:busy:", 3) {
		kit.WantGrant(t, client, "LOCK", key, "strange", "PX", "3600000")
	}
	writeConfig(servers[3])
	_, err := do(proxy.Addr(), "PROXY", "RELOAD")
	kit.Must(t, err)
	kit.Eventually(t, func() error {
		stored, err := do(servers[0].Addr(), "GET", script.MarkerKey)
		if m := marker.ReadMarker(fmt.Sprint(stored)); err == nil && (m.Value.Era.Number == 0 || !m.Value.Seal.IsNone()) {
			err = fmt.Errorf("its marker: %v", stored)
		}
		return err
	})
	kit.Must(t, proxy.Close())
	dir := filepath.Join(t.TempDir(), "strange")
	kit.Must(t, servers[0].Kill())
	kit.Must(t, os.CopyFS(dir, os.DirFS(servers[0].Dir())))
	return dir
}

// setClock sets the master's clock ahead of the machine's clock. The master notices this within a
// second.
func (m *master) setClock(offset time.Duration) error {
	return kit.ReplaceFile(m.clockFile, fmt.Sprintf("%+d\n", int(offset.Seconds())))
}

// copyData replaces the copy of the master's data by a copy of its current data.
func (m *master) copyData() error {
	if err := os.RemoveAll(m.copyDir); err != nil {
		return err
	}
	return os.CopyFS(m.copyDir, os.DirFS(m.Dir()))
}

// startOn starts a killed master with a copy of a directory. If the copy is inconsistent, the
// master starts without data.
func (m *master) startOn(dir string) error {
	files := filepath.Join(m.Dir(), "appendonlydir")
	if err := os.RemoveAll(files); err != nil {
		return err
	}
	if err := os.CopyFS(files, os.DirFS(filepath.Join(dir, "appendonlydir"))); err != nil {
		return err
	}
	if m.RestartWithData() == nil {
		return nil
	}
	return m.Restart()
}

// do sends one command to a server that must reply. It returns an error reply as an error.
func do(addr string, command ...string) (any, error) {
	return doWithin(longReplyTimeout, addr, command...)
}

// doWithin does the same as do, but for a server that may not reply within limit.
func doWithin(limit time.Duration, addr string, command ...string) (any, error) {
	client, err := redistest.Dial(addr, limit)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	reply, err := client.Do(command...)
	if failure, isError := reply.(redistest.RespError); isError {
		return nil, failure
	}
	return reply, err
}

var statePattern = regexp.MustCompile(`redlock_master(\d+):address=([^,]+),[^\r\n]*\bstate=(\w+)`)

// stateVoting is the state of a master that votes, in PROXY INFO.
const stateVoting = "voting"

// masterStates returns, by the index of a master, the state that the proxy reports.
func (p *proxy) masterStates(masters []*master) (map[int]string, error) {
	info, err := doWithin(replyTimeout, p.addr, "PROXY", "INFO")
	if err != nil {
		return nil, err
	}
	states := map[int]string{}
	for _, match := range statePattern.FindAllStringSubmatch(fmt.Sprint(info), -1) {
		if i := int(match[1][0] - '0'); match[2] == masters[i].name {
			states[i] = match[3]
		}
	}
	return states, nil
}

// clockOffset returns how far the master's clock is ahead of the machine's clock, as the proxy
// reports it. known is false if the proxy has no reading of that clock.
func (p *proxy) clockOffset(m *master) (offset time.Duration, known bool, err error) {
	client := &http.Client{Timeout: replyTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Get("http://" + p.adminAddr + "/status/v1")
	if err != nil {
		return 0, false, err
	}
	defer reply.Body.Close()
	var status struct {
		Masters []struct {
			Name          string   `json:"name"`
			ClockOffsetMS *float64 `json:"clock_offset_ms"`
		} `json:"masters"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&status); err != nil {
		return 0, false, err
	}
	for _, reported := range status.Masters {
		if reported.Name == m.name && reported.ClockOffsetMS != nil {
			return time.Duration(*reported.ClockOffsetMS * float64(time.Millisecond)), true, nil
		}
	}
	return 0, false, nil
}
