//go:build integration

package waiting

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { kit.MainParallel(m, 4) }

// longLease is a lease that outlasts each test.
const longLease = "6000000"

// start starts five masters and the given number of proxies.
func start(t *testing.T, proxies int, args ...string) *kit.Fleet {
	t.Helper()
	f := &kit.Fleet{Masters: kit.StartMasters(t)}
	for range proxies {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), args...))
	}
	return f
}

// startWait lets a client of a proxy wait for the lock k.
func startWait(t *testing.T, proxy *harness.Proxy, token string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k", token, "PX", longLease, "BLOCK", "600000")))
	kit.WantBlocked(t, proxy, 1)
	return client
}

// wantGranted fails the test unless the waiting client is granted the lock.
func wantGranted(t *testing.T, client *redistest.Client) {
	t.Helper()
	reply, err := client.Receive()
	kit.Must(t, err)
	if validity, ok := reply.(int64); !ok || validity <= 0 {
		t.Fatalf("got %v, want a validity", reply)
	}
}

// awaitNoCommands waits until no proxy sends the masters commands with keys that begin with k.
func awaitNoCommands(t *testing.T, masters ...*redistest.Server) {
	t.Helper()
	kit.Eventually(t, func() error {
		// A client that polls would send ten commands in this time.
		if keyCommands := commandsOnKeys(t, masters, 300*time.Millisecond); len(keyCommands) > 0 {
			return fmt.Errorf("the masters are asked: %s", keyCommands[0])
		}
		return nil
	})
}

// commandsOnKeys returns the masters' commands on keys that begin with k, within a time window.
func commandsOnKeys(t *testing.T, masters []*redistest.Server, window time.Duration) (lines []string) {
	t.Helper()
	var monitors []*redistest.Client
	for _, master := range masters {
		client := kit.Dial(t, master.Addr())
		kit.Want(t, client, "OK", "MONITOR")
		monitors = append(monitors, client)
	}
	time.Sleep(window) // the monitors record all commands during this time
	for i, client := range monitors {
		end := fmt.Sprint("the end of window ", i)
		kit.Must(t, kit.SendToMaster(masters[i], "ECHO", end))
		for {
			line, err := client.Receive()
			kit.Must(t, err)
			if text := fmt.Sprint(line); strings.Contains(text, end) {
				break
			} else if strings.Contains(text, ` "k`) {
				lines = append(lines, text)
			}
		}
		kit.Must(t, client.Close())
	}
	return lines
}

// commandCounts counts, by name, the commands that a master has run since its statistics were
// reset.
func commandCounts(t *testing.T, master *redistest.Server) map[string]int {
	t.Helper()
	reply, err := kit.QueryDatabase(master, "0", "INFO", "commandstats")
	kit.Must(t, err)
	counts := map[string]int{}
	for line := range strings.SplitSeq(fmt.Sprint(reply), "\r\n") {
		name, figures, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, _ := strings.Cut(figures, ",")
		if n := 0; found {
			_, err := fmt.Sscan(calls, &n)
			kit.Must(t, err)
			counts[name] = n
		}
	}
	return counts
}

// wantWatched waits until the proxy watches a key on the given number of masters.
func wantWatched(t *testing.T, proxy *harness.Proxy, masters int) {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Eventually(t, func() error {
		if info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO")); strings.Count(info, ",watched_keys=1") != masters {
			return fmt.Errorf("not %d masters are watched:\n%s", masters, info)
		}
		return nil
	})
}

// watchers returns the IDs of the connections on which a master reports changes.
func watchers(t *testing.T, master *redistest.Server) (ids []string) {
	t.Helper()
	reply, err := kit.QueryDatabase(master, "0", "CLIENT", "LIST")
	kit.Must(t, err)
	for line := range strings.SplitSeq(fmt.Sprint(reply), "\n") {
		fields := strings.Fields(line)
		for _, field := range fields {
			if flags, found := strings.CutPrefix(field, "flags="); found && strings.Contains(flags, "t") {
				ids = append(ids, strings.TrimPrefix(fields[0], "id="))
			}
		}
	}
	return ids
}
