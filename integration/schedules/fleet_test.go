//go:build integration

// Package schedules runs small schedules, message by message, on real redis-servers. Each schedule
// delays, loses or repeats messages in an order that once broke a lock. Two clients held the lock,
// or the lock vanished, or it reappeared after its release. The tests rely on three facts about the
// masters. A key has the name of its lock, its value ends with the token, and its PTTL is the
// lease.
package schedules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// A to E are the indexes of the masters, by the names that the schedules use.
const (
	A = iota
	B
	C
	D
	E
)

func TestMain(m *testing.M) { kit.MainParallel(m, 4) }

// fleet holds masters, an upstream and proxies.
type fleet struct {
	masters  []*redistest.Server
	upstream *redistest.Server
	proxies  []*proxy
	tags     bool // the proxies keep keys with a tag together
}

// proxy is a proxy with its own link to each master.
type proxy struct {
	*harness.Proxy
	links []*faultlink.CommandLink // in the order of the masters
}

// startFleet starts empty masters and an upstream, and stops all servers when the test ends. Only
// make test-all runs all schedules.
func startFleet(t *testing.T, masters int) *fleet {
	t.Helper()
	redistest.SkipShort(t)
	f := &fleet{upstream: kit.StartRedis(t)}
	for range masters {
		f.masters = append(f.masters, kit.StartRedis(t))
	}
	return f
}

// startLink starts a link, and closes it when the test ends.
func startLink(t *testing.T, target string) *faultlink.CommandLink {
	t.Helper()
	link, err := faultlink.NewCommandLink(target)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, link.Close()) })
	return link
}

// startProxy starts a proxy with lock:* as lock keys, and waits until all masters vote. The proxy
// waits two seconds for a reply of a master, which is enough on a busy machine.
func (f *fleet) startProxy(t *testing.T, args ...string) *proxy {
	t.Helper()
	return f.startProxyOn(t, f.startLinks(t), args...)
}

// comparisonStart is the command with which a proxy begins to compare all keys of the masters.
const comparisonStart = "*2\r\n$4\r\ninfo\r\n$8\r\nkeyspace\r\n"

// startProxyWithoutComparing starts a proxy that never compares all keys of the masters. Other
// proxies do so after their start, and when a proxy has died. So the proxy finds the cells that a
// schedule left on a minority only if a command asks for their key.
func (f *fleet) startProxyWithoutComparing(t *testing.T, args ...string) *proxy {
	t.Helper()
	links := f.startLinks(t)
	for _, link := range links {
		link.HoldCommands(faultlink.Containing(comparisonStart))
	}
	return f.startProxyOn(t, links, args...)
}

// startLinks starts a link to each master.
func (f *fleet) startLinks(t *testing.T) (links []*faultlink.CommandLink) {
	t.Helper()
	for _, master := range f.masters {
		links = append(links, startLink(t, master.Addr()))
	}
	return links
}

// startProxyOn starts a proxy with the given links, as startProxy does.
func (f *fleet) startProxyOn(t *testing.T, links []*faultlink.CommandLink, args ...string) *proxy {
	t.Helper()
	var urls []string
	for _, link := range links {
		urls = append(urls, "redis://"+link.Addr())
	}
	args = slices.Concat(kit.LockKeyArgs(f.upstream), []string{"--master-timeout", "2s"}, args)
	p := &proxy{Proxy: kit.StartProxy(t, urls, args...), links: links}
	f.proxies = append(f.proxies, p)
	p.wantVoting(t)
	return p
}

// wantVoting waits until the proxy sees all masters vote.
func (p *proxy) wantVoting(t *testing.T) {
	t.Helper()
	client := connect(t, p)
	defer client.Close()
	kit.Eventually(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		if strings.Count(info, ",state=") != strings.Count(info, ",state=voting,") {
			return fmt.Errorf("not all masters vote:\n%s", info)
		}
		return nil
	})
}

// wantVotesOf waits until the proxy sees exactly the given masters vote.
func (p *proxy) wantVotesOf(t *testing.T, masters ...int) {
	t.Helper()
	client := connect(t, p)
	defer client.Close()
	kit.Eventually(t, func() error {
		// Without this GET the proxy would not notice a hanging master.
		_ = kit.Do(t, client, "GET", "lock:noticed")
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		for i, link := range p.links {
			if votes := strings.Contains(info, "address="+link.Addr()+",state=voting,"); votes != contains(masters, i) {
				return fmt.Errorf("%s votes: %v:\n%s", letters([]int{i}), votes, info)
			}
		}
		return nil
	})
}

// connect opens a connection to a proxy, and closes it when the test ends.
func connect(t *testing.T, p *proxy) *redistest.Client { t.Helper(); return kit.Dial(t, p.Addr()) }

// sendAsync sends a command, and returns a channel for its reply. If the connection fails, the
// channel receives the error.
func sendAsync(client *redistest.Client, command ...string) <-chan any {
	replies := make(chan any, 1)
	go func() {
		reply, err := client.Do(command...)
		if err != nil {
			reply = err
		}
		replies <- reply
	}()
	return replies
}

// wantGrant sends a LOCK or EXTEND, and fails the test unless it is granted. It returns the time
// until which the client may rely on the lock.
func wantGrant(t *testing.T, client *redistest.Client, command ...string) (validUntil time.Time) {
	t.Helper()
	sentAt := time.Now()
	reply := kit.Do(t, client, command...)
	if !isGrant(reply) {
		t.Fatalf("%v: got %#v, want a validity", command, reply)
	}
	return sentAt.Add(time.Duration(reply.(int64)) * time.Millisecond)
}

// isGrant reports whether a reply grants a LOCK or EXTEND, or is the OK of a SET.
func isGrant(reply any) bool {
	ms, ok := reply.(int64)
	return ok && ms > 0 || reply == "OK"
}

// awaitGrant repeats a command until it is granted, and returns the time of the reply. It returns
// the zero time if the command is not granted before deadline.
func awaitGrant(t *testing.T, client *redistest.Client, deadline time.Time, command ...string) time.Time {
	t.Helper()
	for ; time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if isGrant(kit.Do(t, client, command...)) {
			return time.Now()
		}
	}
	return time.Time{}
}
