//go:build integration

// Package schedules runs small schedules, message by message, on real redis-servers: what is late,
// lost or done twice there once let a lock be held by two, come back after its release, or vanish.
// The tests know of the masters only that a lock's key has the lock's name, that its value ends
// with the token, and that its PTTL is the lease.
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

// The masters, as the schedules name them.
const (
	A = iota
	B
	C
	D
	E
)

func TestMain(m *testing.M) { kit.MainAtOnce(m, 4) }

// fleet is masters, and the upstream and the proxies before them.
type fleet struct {
	masters  []*redistest.Server
	upstream *redistest.Server
	proxies  []*proxy
	tags     bool // the proxies keep keys with a tag together
}

// proxy reaches each master over a link of its own.
type proxy struct {
	*harness.Proxy
	links []*faultlink.CommandLink // in the order of the masters
}

// startFleet starts masters that are empty. Everything ends with the test. All schedules are left
// to make test-all.
func startFleet(t *testing.T, masters int) *fleet {
	t.Helper()
	redistest.SkipShort(t)
	f := &fleet{upstream: kit.StartRedis(t)}
	for range masters {
		f.masters = append(f.masters, kit.StartRedis(t))
	}
	return f
}

// startLink starts a link, which ends with the test.
func startLink(t *testing.T, target string) *faultlink.CommandLink {
	t.Helper()
	link, err := faultlink.NewCommandLink(target)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, link.Close()) })
	return link
}

// proxy starts one for which lock:* are lock keys, and waits until all masters vote. It gives up
// what is held after two seconds, which a busy machine keeps.
func (f *fleet) proxy(t *testing.T, args ...string) *proxy {
	t.Helper()
	p := &proxy{}
	var urls []string
	for _, master := range f.masters {
		link := startLink(t, master.Addr())
		p.links, urls = append(p.links, link), append(urls, "redis://"+link.Addr())
	}
	p.Proxy = kit.StartProxy(t, urls, slices.Concat(kit.LockKeyArgs(f.upstream), []string{"--master-timeout", "2s"}, args)...)
	f.proxies = append(f.proxies, p)
	p.wantVoting(t)
	return p
}

// wantVoting wants all masters to vote soon, as this proxy sees it: then it owes them nothing,
// either.
func (p *proxy) wantVoting(t *testing.T) {
	t.Helper()
	client := connect(t, p)
	defer client.Close()
	kit.Soon(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		if strings.Count(info, ",state=") != strings.Count(info, ",state=voting,") {
			return fmt.Errorf("not all masters vote:\n%s", info)
		}
		return nil
	})
}

// wantVotesOf wants exactly these masters to vote soon, as this proxy sees it.
func (p *proxy) wantVotesOf(t *testing.T, masters ...int) {
	t.Helper()
	client := connect(t, p)
	defer client.Close()
	kit.Soon(t, func() error {
		_ = kit.Do(t, client, "GET", "lock:noticed") // or a master that hangs is not known to
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		for i, link := range p.links {
			if votes := strings.Contains(info, "address="+link.Addr()+",state=voting,"); votes != has(masters, i) {
				return fmt.Errorf("%s votes: %v:\n%s", names([]int{i}), votes, info)
			}
		}
		return nil
	})
}

// connect opens a connection to a proxy, closed with the test.
func connect(t *testing.T, p *proxy) *redistest.Client { t.Helper(); return kit.Dial(t, p.Addr()) }

// settles is how long masters have to come to hold the same; it takes 3 s of quiet where the
// machine is idle.
const settles = 20 * time.Second

// eventually waits until a condition is met, and returns why it is not.
func eventually(condition func() error) error {
	err := condition()
	for end := time.Now().Add(settles); err != nil && time.Now().Before(end); err = condition() {
		time.Sleep(50 * time.Millisecond) // polls
	}
	return err
}

// doing sends a command at once, and gives its reply when it is there: nil, too, for a connection
// that fails.
func doing(client *redistest.Client, command ...string) <-chan any {
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

// wantGrant sends a LOCK or EXTEND, wants it granted, and returns until when its client may rely on
// it at least.
func wantGrant(t *testing.T, client *redistest.Client, command ...string) (until time.Time) {
	t.Helper()
	sent := time.Now()
	reply := kit.Do(t, client, command...)
	if !isGrant(reply) {
		t.Fatalf("%v: got %#v, want a validity", command, reply)
	}
	return sent.Add(time.Duration(reply.(int64)) * time.Millisecond)
}

// isGrant reports whether a reply is that of a LOCK or EXTEND that was granted, or of a SET.
func isGrant(reply any) bool {
	ms, ok := reply.(int64)
	return ok && ms > 0 || reply == "OK"
}

// isNoQuorum reports whether a reply says that it cannot be known.
func isNoQuorum(reply any) bool {
	failure, ok := reply.(redistest.RespError)
	return ok && strings.HasPrefix(string(failure), "NOQUORUM ")
}

// firstGrant sends a command again and again until it is granted, and returns when that answer was
// there; the zero time if it was not before end.
func firstGrant(t *testing.T, client *redistest.Client, end time.Time, command ...string) time.Time {
	t.Helper()
	for ; time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if isGrant(kit.Do(t, client, command...)) {
			return time.Now()
		}
	}
	return time.Time{}
}
