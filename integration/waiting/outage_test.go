//go:build integration

package waiting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// outages holds the ways in which two of three masters can be down.
var outages = map[string]struct {
	begin, end func(*redistest.Server, *faultlink.Link) error
}{
	"stopped": {
		func(s *redistest.Server, _ *faultlink.Link) error { return s.Pause() },
		func(s *redistest.Server, _ *faultlink.Link) error { return s.Continue() },
	},
	"killed": {
		func(s *redistest.Server, _ *faultlink.Link) error { return s.Kill() },
		func(s *redistest.Server, _ *faultlink.Link) error { return s.RestartWithData() },
	},
	"cut off": {
		func(_ *redistest.Server, l *faultlink.Link) error { return l.Cut() },
		func(_ *redistest.Server, l *faultlink.Link) error { return l.Heal() },
	},
	"refused": {
		func(_ *redistest.Server, l *faultlink.Link) error { return l.Refuse() },
		func(_ *redistest.Server, l *faultlink.Link) error { return l.Heal() },
	},
}

// threeMasterFleet holds two proxies and three masters that lose no data, with links between them.
type threeMasterFleet struct {
	*kit.Fleet
	links []*faultlink.Link
}

func startThreeMasters(t *testing.T, args ...string) threeMasterFleet {
	t.Helper()
	f := threeMasterFleet{Fleet: &kit.Fleet{}}
	for range 3 {
		f.Masters = append(f.Masters, kit.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always"))
	}
	f.links = kit.StartLinks(t, f.Masters)
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, kit.LinkURLs(f.links),
			slices.Concat(kit.DefaultMasterTimeoutArgs(), []string{"--lock-keys", "*"}, args)...))
	}
	f.WantVoting(t, 3)
	return f
}

// duringOutage calls action while two of the masters are down.
func (f threeMasterFleet) duringOutage(t *testing.T, outage string, action func()) {
	t.Helper()
	for i := range 2 {
		kit.Must(t, outages[outage].begin(f.Masters[i], f.links[i]))
	}
	action()
	for i := range 2 {
		kit.Must(t, outages[outage].end(f.Masters[i], f.links[i]))
	}
}

// waiterGroup is a group of clients that wait for a lock, hold it in turn, and release it.
type waiterGroup struct {
	waiters sync.WaitGroup
	errs    chan error
}

func (c *waiterGroup) startWaiter(t *testing.T, proxy *harness.Proxy, key, token string) {
	client := kit.Connect(t, proxy)
	c.waiters.Go(func() {
		reply, err := client.Do("LOCK", key, token, "PX", longLease, "BLOCK", "0")
		if validity, granted := reply.(int64); err != nil || !granted || validity <= 0 {
			c.errs <- fmt.Errorf("LOCK %s %s: %v, %w", key, token, reply, err)
			return
		}
		if err := release(client, key, token); err != nil {
			c.errs <- err
		}
	})
}

// release repeats an UNLOCK until a reply shows that the lock is released. After NOQUORUM an
// earlier UNLOCK may have released it: then 0 is a correct reply.
func release(client *redistest.Client, key, token string) error {
	mayBeReleased := false
	for end := time.Now().Add(kit.WaitLimit); ; time.Sleep(time.Millisecond) {
		reply, err := client.Do("UNLOCK", key, token)
		switch text := kit.ReplyText(reply); {
		case err == nil && (reply == any(int64(1)) || mayBeReleased && reply == any(int64(0))):
			return nil
		case err == nil && strings.HasPrefix(text, "NOQUORUM ") && time.Now().Before(end):
			mayBeReleased = true
		default:
			return fmt.Errorf("UNLOCK %s %s: %s, %w", key, token, text, err)
		}
	}
}

// takeLock repeats the holder's LOCK until it is granted, as long as the reply is NOQUORUM.
func takeLock(t *testing.T, holder *redistest.Client, key string) {
	t.Helper()
	kit.Eventually(t, func() error {
		reply := kit.Do(t, holder, "LOCK", key, "holder", "PX", longLease)
		if kit.IsNoQuorum(reply) {
			return errors.New(kit.ReplyText(reply))
		}
		if !kit.IsGranted(reply) {
			t.Fatalf("LOCK %s: %v", key, reply)
		}
		return nil
	})
}

func (c *waiterGroup) wantAllServed(t *testing.T) {
	t.Helper()
	c.waiters.Wait()
	close(c.errs)
	for err := range c.errs {
		t.Error(err)
	}
}

// TestWaitersOutliveOutage checks that the proxies serve waiting clients when two of three masters
// are up again. The clients wait for a lock, for a lock with a tag, or for an element. The proxies
// also serve new waiters.
func TestWaitersOutliveOutage(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	const waitersPerKey = 10
	f := startThreeMasters(t, "--lock-tags", "*")
	holder := kit.Connect(t, f.Proxies[0])
	for outage := range outages {
		for _, duration := range []time.Duration{200 * time.Millisecond, 3700 * time.Millisecond} {
			t.Run(fmt.Sprint(outage, ", ", duration), func(t *testing.T) {
				keys := []string{"k", "x:{u}"}
				c := waiterGroup{errs: make(chan error, 100)}
				for _, key := range keys {
					takeLock(t, holder, key)
					for i := range waitersPerKey {
						c.startWaiter(t, f.Proxies[i%2], key, fmt.Sprint("waiter ", i))
					}
				}
				var popClients []*redistest.Client
				for i, key := range []string{"list", "list:{u}"} {
					client := kit.Connect(t, f.Proxies[i])
					kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", key, "0")))
					popClients = append(popClients, client)
				}
				for _, proxy := range f.Proxies {
					kit.WantBlocked(t, proxy, len(keys)*waitersPerKey/2+1)
				}
				f.duringOutage(t, outage, func() {
					for i, key := range keys {
						c.startWaiter(t, f.Proxies[i], key, "late")
					}
					time.Sleep(duration) // the test varies the length of the outage
					for _, proxy := range f.Proxies {
						kit.WantBlocked(t, proxy, len(keys)*waitersPerKey/2+2)
					}
				})
				f.WantVoting(t, 3)
				for _, key := range keys {
					kit.Must(t, release(holder, key, "holder"))
				}
				c.wantAllServed(t)
				for i, key := range []string{"list", "list:{u}"} {
					kit.Want(t, holder, int64(1), "RPUSH", key, "e")
					wantPopped(t, popClients[i], key, "e")
				}
			})
		}
	}
}

// TestWaitsEndInOutage covers clients whose waiting time ends during an outage. They get NOQUORUM,
// because the proxy knows neither whether another client holds the lock, nor whether there is an
// element. Without an outage, they get nil.
func TestWaitsEndInOutage(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startThreeMasters(t, append(kit.LongMasterTimeoutArgs(), "--lock-tags", "*")...)
	holder := kit.Connect(t, f.Proxies[0])
	for _, key := range []string{"k", "x:{u}"} {
		kit.WantGrant(t, holder, "LOCK", key, "holder", "PX", longLease)
	}
	commands := [][]string{
		// The second client is behind the first client in the queue.
		{"LOCK", "k", "t", "PX", longLease, "BLOCK", "3000"}, {"LOCK", "k", "t", "PX", longLease, "BLOCK", "3100"},
		{"LOCK", "x:{u}", "t", "PX", longLease, "BLOCK", "3000"}, {"LOCK", "free", "t", "PX", longLease, "BLOCK", "3000"},
		{"BLPOP", "list", "3"}, {"BLPOP", "list", "list2", "3"}, {"BLPOP", "list:{u}", "3"},
	}
	wantEnd := func(isExpected func(string) bool, commands ...[]string) {
		t.Helper()
		var clients []*redistest.Client
		for _, command := range commands {
			client := kit.Connect(t, f.Proxies[1])
			kit.Must(t, client.Send(redistest.AppendCommand(nil, command...)))
			clients = append(clients, client)
		}
		for i, client := range clients {
			reply, err := client.Receive()
			kit.Must(t, err)
			if text := kit.ReplyText(reply); !isExpected(text) {
				t.Errorf("%v: %v", commands[i], text)
			}
		}
	}
	isNil := func(text string) bool { return text == "nil" }
	wantEnd(isNil, append(commands[:3:3], commands[4:]...)...)
	f.duringOutage(t, "refused", func() {
		wantEnd(func(text string) bool { return strings.HasPrefix(text, "NOQUORUM 1 of 3 masters ") }, commands...)
	})
	f.WantVoting(t, 3)
	wantEnd(isNil, append(commands[:3:3], commands[4:]...)...)
}

// TestWaitersDisconnectInOutage disconnects clients while two of three masters are down. The
// clients leave their queue immediately, and get nothing later.
func TestWaitersDisconnectInOutage(t *testing.T) {
	f := startThreeMasters(t, kit.LongMasterTimeoutArgs()...)
	var waiters []*redistest.Client
	f.duringOutage(t, "refused", func() {
		for range 2 {
			client := kit.Connect(t, f.Proxies[1])
			kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k", "t", "PX", longLease, "BLOCK", "0")))
			waiters = append(waiters, client)
		}
		kit.WantBlocked(t, f.Proxies[1], 2)
		for _, client := range waiters {
			kit.Must(t, client.Close())
		}
		kit.WantBlocked(t, f.Proxies[1], 0)
	})
	f.WantVoting(t, 3)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "u", "PX", longLease)
}

// TestNoPollingInOutage checks that the third master gets no commands for waiters while two of
// three masters are down.
func TestNoPollingInOutage(t *testing.T) {
	f := startThreeMasters(t, kit.LongMasterTimeoutArgs()...)
	f.duringOutage(t, "refused", func() {
		for i := range 20 {
			client := kit.Connect(t, f.Proxies[i%2])
			kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", fmt.Sprint("k", i), "t", "PX", longLease,
				"BLOCK", "0")))
			client = kit.Connect(t, f.Proxies[i%2])
			kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", fmt.Sprint("kl", i), "0")))
		}
		for _, proxy := range f.Proxies {
			kit.WantBlocked(t, proxy, 20)
		}
		awaitNoCommands(t, f.Masters[2])
	})
}
