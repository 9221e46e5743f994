//go:build integration

package guard

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// settingsError is a part of the error of a proxy whose settings differ from those of the other
	// proxies. remedy is the command that the error names.
	settingsError = "in use by proxies with different settings"
	remedy        = "redlock-proxy init --new-settings"
)

// differingSettings lists the ways in which the settings of a first and a second proxy may differ,
// with the text of the difference.
var differingSettings = []struct{ name, firstArg, secondArg, difference string }{
	{"lock-tags", "--lock-tags=*", "", `lock-tags: the masters have ["*"], this proxy has []`},
	{"tags of its own", "", "--lock-tags=*", `lock-tags: the masters have [], this proxy has ["*"]`},
	{"key-prefix", "", "--key-prefix=p:", `key-prefix: the masters have "", this proxy has "p:"`},
	{"lock-keys", "", "--lock-keys=*", `lock-keys: the masters have ["lock:*"], this proxy has ["*" "lock:*"]`},
	{"guard off", "", "--guard=false", `guard: the masters have true, this proxy has false`},
	{"guard on", "--guard=false", "", `guard: the masters have false, this proxy has true`},
}

// startWithSetting starts a proxy with the lock keys lock:* and at most one further setting.
func startWithSetting(t *testing.T, masters []*redistest.Server, upstream *redistest.Server, setting string) *harness.Proxy {
	t.Helper()
	args := kit.LockKeyArgs(upstream)
	if setting != "" {
		args = append(args, setting)
	}
	return kit.StartProxy(t, redistest.URLs(masters), args...)
}

// takeCommand returns a command that must not be granted twice.
func takeCommand(token string) []string {
	return []string{"SET", "lock:x:{lock:t}", token, "NX", "PX", "600000"}
}

// take sends takeCommand for the token me, and requires OK. It repeats a late one, which may exclude
// the next one for a while.
func take(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	client, wasLate := kit.Connect(t, proxy), false
	kit.Eventually(t, func() error {
		switch reply := kit.Do(t, client, takeCommand("me")...); {
		case reply == "OK":
			return nil
		case kit.IsLate(reply), wasLate && reply == nil:
			wasLate = true
			return fmt.Errorf("SET: %v", reply)
		default:
			t.Fatalf("SET: %v, want OK", reply)
			return nil
		}
	})
}

// wantRefused waits until the masters do not vote for a proxy, and until its reply and its log name
// the difference and the remedy.
func wantRefused(t *testing.T, proxy *harness.Proxy, masters int, difference string) {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Eventually(t, func() error {
		text := kit.ReplyText(kit.Do(t, client, takeCommand("you")...))
		if text == "OK" {
			t.Fatal("DOUBLE GRANT: the other proxy holds the lock")
		}
		for _, part := range []string{fmt.Sprintf("NOQUORUM 0 of %d masters vote: ", masters), settingsError, difference, remedy} {
			if !strings.Contains(text, part) {
				return fmt.Errorf("got %s\nwant %q in it", text, part)
			}
		}
		if log := strings.ReplaceAll(proxy.Log(), `\"`, `"`); !strings.Contains(log, difference) ||
			!strings.Contains(log, remedy) {
			return fmt.Errorf("the log does not have %q and %q", difference, remedy)
		}
		return nil
	})
}

// wantWorking waits until a proxy returns the value that takeCommand has set, and checks that the
// proxy grants other locks.
func wantWorking(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Eventually(t, func() error {
		if got := kit.ReplyText(kit.Do(t, client, "GET", "lock:x:{lock:t}")); got != "me" {
			return fmt.Errorf("GET: %s", got)
		}
		return nil
	})
	kit.WantGrant(t, client, "LOCK", "lock:more", "me", "PX", "60000")
	kit.WantReleased(t, client, "lock:more", "me")
}

// TestProxiesWithDifferentSettings checks that the second of two proxies with the same masters gets
// no votes if their settings differ. This holds while the first proxy runs, and after it has ended.
// It also holds while the first proxy is stopped for so long that it counts as gone. The test uses
// three and five masters.
func TestProxiesWithDifferentSettings(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, n := range []int{3, 5} {
		for _, c := range differingSettings {
			t.Run(fmt.Sprintf("%s, %d masters", c.name, n), func(t *testing.T) {
				masters, upstream := kit.StartMasters(t)[:n], kit.StartRedis(t)
				firstProxy := startWithSetting(t, masters, upstream, c.firstArg)
				take(t, firstProxy)
				secondProxy := startWithSetting(t, masters, upstream, c.secondArg)
				wantRefused(t, secondProxy, n, c.difference)
				wantWorking(t, firstProxy)
				kit.Must(t, secondProxy.Close())

				kit.Must(t, firstProxy.Signal(syscall.SIGSTOP))
				kit.Eventually(t, func() error { return checkNoRecentProxy(masters) })
				laterProxy := startWithSetting(t, masters, upstream, c.secondArg)
				wantRefused(t, laterProxy, n, c.difference)
				kit.Must(t, firstProxy.Signal(syscall.SIGCONT))
				wantWorking(t, firstProxy)
				wantRefused(t, laterProxy, n, c.difference)
				wantWorking(t, firstProxy)
				kit.Must(t, laterProxy.Close())
				kit.Must(t, firstProxy.Close())
				wantRefused(t, startWithSetting(t, masters, upstream, c.secondArg), n, c.difference)
				wantWorking(t, startWithSetting(t, masters, upstream, c.firstArg))
			})
		}
	}
}

// checkNoRecentProxy returns an error if a proxy has announced itself on one of the masters in the
// last three seconds.
func checkNoRecentProxy(masters []*redistest.Server) error {
	for _, master := range masters {
		announced, err := kit.QueryDatabase(master, "0", "EVAL", `local now, alive = redis.call('time')[1] * 1000, 0
for _, entry in ipairs(redis.call('hvals', 'redlock-proxy:proxies')) do
  if now - tonumber(string.match(entry, '^%d+')) < 3000 then alive = alive + 1 end
end
return alive`, "0")
		if err != nil || announced != int64(0) {
			return fmt.Errorf("the masters know of %v proxies: %v", announced, err)
		}
	}
	return nil
}

// TestProxiesWithDifferentMasters checks that the second of two proxies gets no votes if they have
// all masters but one in common. A different number of masters has the same effect. A proxy that
// has the same masters under different names and in a different order gets votes.
func TestProxiesWithDifferentMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " masters"), func(t *testing.T) {
			masters, upstream := append(kit.StartMasters(t), kit.StartRedis(t)), kit.StartRedis(t)
			firstMasters := masters[:n]
			secondMasters := append(slices.Clone(masters[:n-1]), masters[n])
			firstProxy := startWithSetting(t, firstMasters, upstream, "")
			take(t, firstProxy)
			firstAddrs, secondAddrs := addrs(firstMasters), addrs(secondMasters)
			difference := fmt.Sprintf("masters: the masters have %s, this proxy has %s", firstAddrs, secondAddrs)
			wantRefused(t, startWithSetting(t, secondMasters, upstream, ""), n, difference)
			wantWorking(t, firstProxy)
			kit.Must(t, firstProxy.Signal(syscall.SIGSTOP))
			kit.Eventually(t, func() error { return checkNoRecentProxy(masters[n-1 : n]) })
			wantRefused(t, startWithSetting(t, secondMasters, upstream, ""), n, difference)
			kit.Must(t, firstProxy.Signal(syscall.SIGCONT))
			wantWorking(t, firstProxy)

			links := kit.LinkURLs(kit.StartLinks(t, firstMasters))
			slices.Reverse(links)
			f := &kit.Fleet{Masters: firstMasters, Proxies: []*harness.Proxy{kit.StartProxy(t, links, kit.LockKeyArgs(upstream)...)}}
			wantWorking(t, f.Proxies[0])
			kit.Must(t, firstProxy.Close())
			// Each master restarts without its data, and with a new run_id.
			for _, master := range firstMasters {
				kit.Must(t, master.Restart())
				kit.Eventually(t, func() error {
					if text, err := kit.QueryDatabase(master, "0", "GET", rulesKey); err != nil || text == nil {
						return fmt.Errorf("it has no rules yet: %v", err)
					}
					return nil
				})
				f.WantVoting(t, n)
			}
			wantWorking(t, kit.StartProxy(t, links, kit.LockKeyArgs(upstream)...))
		})
	}
}

// addrs returns the addresses of servers as text.
func addrs(servers []*redistest.Server) string {
	var list []string
	for _, server := range servers {
		list = append(list, server.Addr())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// rulesKey is the key on a master with the settings that must be the same for all proxies.
const rulesKey = "redlock-proxy:rules"

// TestMasterWithWrongSettings checks that a master with wrong settings loses only its own vote, at
// running proxies and at a new proxy. Without a marker, it gets the settings of the majority.
func TestMasterWithWrongSettings(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " masters"), func(t *testing.T) {
			masters, upstream := kit.StartMasters(t)[:n], kit.StartRedis(t)
			f := &kit.Fleet{Masters: masters}
			for range 2 {
				f.Proxies = append(f.Proxies, startWithSetting(t, masters, upstream, ""))
			}
			take(t, f.Proxies[0])
			f.WantVoting(t, n)
			kit.Must(t, kit.SendToMaster(masters[0], "SET", rulesKey, "guard false\nkey-prefix \"q:\"\nmaster - elsewhere:1"))
			f.WantVoting(t, n-1)
			f.Proxies = append(f.Proxies, startWithSetting(t, masters, upstream, ""))
			f.WantVoting(t, n-1)
			for _, proxy := range f.Proxies {
				wantWorking(t, proxy)
			}
			// Without its marker, no key of the master counts, as if its data came from other
			// masters.
			kit.Must(t, kit.SendToMaster(masters[0], "DEL", "redlock-proxy:marker"))
			f.WantVoting(t, n)

			kit.Must(t, masters[1].Restart()) // without its data
			f.WantVoting(t, n)
			kit.EachMaster(t, masters, func(master *redistest.Server) error {
				text, err := kit.QueryDatabase(master, "0", "GET", rulesKey)
				if err == nil && !strings.Contains(kit.ReplyText(text), `lock-keys ["lock:*"]`) {
					err = fmt.Errorf("the rules are %v", text)
				}
				return err
			})
		})
	}
}

// TestConcurrentStartOfDifferentProxies starts two proxies with different settings at the same time
// on new masters. At most one proxy grants locks.
func TestConcurrentStartOfDifferentProxies(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n, " masters"), func(t *testing.T) {
			masters, upstream := kit.StartMasters(t)[:n], kit.StartRedis(t)
			var proxies [2]*harness.Proxy
			var starts sync.WaitGroup
			for i, setting := range []string{"", "--key-prefix=p:"} {
				starts.Go(func() { proxies[i] = startWithSetting(t, masters, upstream, setting) })
			}
			starts.Wait()
			granted := [2]int{}
			for k := range 20 {
				for i, proxy := range proxies {
					if _, isGranted := kit.Do(t, kit.Connect(t, proxy), "LOCK", fmt.Sprint("lock:", k), "me", "PX",
						"60000").(int64); isGranted {
						granted[i]++
					}
				}
			}
			t.Logf("granted: %v", granted)
			if granted[0] > 0 && granted[1] > 0 {
				t.Errorf("DOUBLE GRANT: each of both gave locks: %v", granted)
			}
		})
	}
}
