//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// patience is how long a test waits for what must come; far longer than it takes on an idle machine.
const patience = 10 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	if err := harness.RemoveBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// fleet is five masters and the proxies before them.
type fleet struct {
	masters []*harness.Redis
	proxies []*harness.Proxy
	links   [][]*harness.Link // of each proxy, in the order of the masters; empty where it reaches them directly
}

// startFleet starts five masters and a proxy that reaches them directly. Both end with the test.
func startFleet(t *testing.T, args ...string) *fleet {
	t.Helper()
	f := &fleet{masters: startMasters(t)}
	f.proxies = append(f.proxies, startProxy(t, harness.URLs(f.masters), args...))
	return f
}

// startLinkedFleet starts five masters and so many proxies, each of which reaches each master over a link of its own.
func startLinkedFleet(t *testing.T, proxies int, args ...string) *fleet {
	t.Helper()
	f := &fleet{masters: startMasters(t)}
	for range proxies {
		links := startLinks(t, f.masters)
		f.links = append(f.links, links)
		f.proxies = append(f.proxies, startProxy(t, linkURLs(links), args...))
	}
	return f
}

// names are the masters as the first proxy knows them.
func (f *fleet) names() []string {
	var names []string
	for i, master := range f.masters {
		if len(f.links) > 0 {
			names = append(names, f.links[0][i].Addr())
		} else {
			names = append(names, master.Addr())
		}
	}
	return names
}

// startMasters starts five masters, which end with the test.
func startMasters(t *testing.T) []*harness.Redis {
	t.Helper()
	masters, err := harness.StartMasters(5)
	if errors.Is(err, harness.ErrNoRedis) {
		harness.Absent(t, err.Error())
	}
	must(t, err)
	t.Cleanup(func() { closes(t, harness.CloseAll(masters)) })
	return masters
}

// startRedis starts one server, which ends with the test.
func startRedis(t *testing.T, args ...string) *harness.Redis {
	t.Helper()
	server, err := harness.StartRedis(harness.RedisOptions{ExtraArgs: args})
	if errors.Is(err, harness.ErrNoRedis) {
		harness.Absent(t, err.Error())
	}
	must(t, err)
	t.Cleanup(func() { closes(t, server.Close()) })
	return server
}

func startLinks(t *testing.T, masters []*harness.Redis) []*harness.Link {
	t.Helper()
	links := make([]*harness.Link, len(masters))
	for i, master := range masters {
		link, err := harness.NewLink(master.Addr())
		must(t, err)
		t.Cleanup(func() { closes(t, link.Close()) })
		links[i] = link
	}
	return links
}

func linkURLs(links []*harness.Link) []string {
	urls := make([]string, len(links))
	for i, link := range links {
		urls[i] = "redis://" + link.Addr()
	}
	return urls
}

// startProxy starts a proxy before these masters, which ends with the test. A test that fails shows its log.
func startProxy(t *testing.T, masters []string, args ...string) *harness.Proxy {
	t.Helper()
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: masters, Args: args})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the proxy on %s:\n%s", proxy.Addr(), proxy.Log())
		}
		closes(t, proxy.Close())
		wantSound(t, proxy)
	})
	return proxy
}

// wantSound wants no accident in a proxy's log; the race detector tells there as well, in a binary that was built with it.
func wantSound(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	for _, accident := range []string{"a session failed", "panic: ", "DATA RACE"} {
		if strings.Contains(proxy.Log(), accident) {
			t.Errorf("%q in the log of the proxy on %s:\n%s", accident, proxy.Addr(), proxy.Log())
		}
	}
}

// connect opens a connection to the proxy, closed with the test.
func connect(t *testing.T, proxy *harness.Proxy) *harness.Client {
	t.Helper()
	client, err := harness.Dial(proxy.Addr(), patience)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// do sends one command and returns its reply; a connection that fails ends the test.
func do(t *testing.T, client *harness.Client, command ...string) any {
	t.Helper()
	reply, err := client.Do(command...)
	must(t, err)
	return reply
}

// want sends one command and wants this reply.
func want(t *testing.T, client *harness.Client, reply any, command ...string) {
	t.Helper()
	if got := do(t, client, command...); got != reply {
		t.Fatalf("%v: got %#v, want %#v", command, got, reply)
	}
}

// wantGrant sends a LOCK and wants to be granted it.
func wantGrant(t *testing.T, client *harness.Client, command ...string) time.Duration {
	t.Helper()
	reply := do(t, client, command...)
	ms, ok := reply.(int64)
	if !ok || ms <= 0 {
		t.Fatalf("%v: got %#v, want a validity", command, reply)
	}
	return time.Duration(ms) * time.Millisecond
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everywhere wants a condition of each of these masters, soon.
func everywhere(t *testing.T, masters []*harness.Redis, condition func(*harness.Redis) error) {
	t.Helper()
	for _, master := range masters {
		settles(t, func() error { return condition(master) })
	}
}
