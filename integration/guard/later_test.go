//go:build integration

package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

const laterVersion = "proxies of a later version use it: upgrade this proxy"

// TestMastersOfALaterVersion: masters with markers of a later protocol, which this proxy cannot
// read, do not vote. The proxy reports why, and neither it nor the operator's commands change
// anything on them. A single such master counts as unavailable.
func TestMastersOfALaterVersion(t *testing.T) {
	redistest.SkipShort(t)
	masters := kit.StartMasters(t)
	first := kit.StartProxy(t, redistest.URLs(masters))
	(&kit.Fleet{Proxies: []*harness.Proxy{first}}).WantVoting(t, len(masters))
	kit.WantGrant(t, kit.Connect(t, first), "LOCK", "held", "me", "PX", "600000")
	kit.Soon(t, func() error { // on all masters, since one of them will be down
		for _, master := range masters {
			if reply, err := kit.AskIn(master, "0", "EXISTS", "held"); err != nil || reply != any(int64(1)) {
				return fmt.Errorf("EXISTS: %v, %w", reply, err)
			}
		}
		return nil
	})
	kit.Must(t, first.Close())
	forge := func(master *redistest.Server) {
		stands, err := kit.AskIn(master, "0", "GET", script.MarkerKey)
		kit.Must(t, err)
		words := strings.Split(stands.(string), " ")
		if marker.ProtocolOf(stands.(string), "") != marker.Protocol {
			t.Fatalf("a marker without the protocol: %q", stands)
		}
		words[2] = strings.TrimSuffix(words[2], fmt.Sprint("-", marker.Protocol)) + fmt.Sprint("-", marker.Protocol+1)
		kit.Must(t, kit.Tell(master, "SET", script.MarkerKey, strings.Join(words, " ")+" and what is new"))
	}
	forge(masters[0])
	among := kit.StartProxy(t, redistest.URLs(masters))
	client := kit.Connect(t, among)
	kit.Soon(t, func() error {
		if reply := kit.Do(t, client, "LOCK", "held", "other", "PX", "1000"); reply != nil {
			return fmt.Errorf("LOCK of what is held: %v", reply)
		}
		return nil
	})
	kit.Must(t, among.Close())
	for _, master := range masters[1:] {
		forge(master)
	}
	before := left(t, masters)
	proxy := kit.StartProxy(t, redistest.URLs(masters))
	client = kit.Connect(t, proxy)
	reply := kit.Text(kit.Do(t, client, "LOCK", "free", "me", "PX", "1000"))
	if !strings.HasPrefix(reply, "NOQUORUM 0 of ") || !strings.Contains(reply, laterVersion) {
		t.Errorf("LOCK: %s", reply)
	}
	for _, command := range [][]string{{"check"}, {"init", "--longest-ttl", "1m"}, {"init", "--new-settings"}} {
		if said := run(t, masters, command...); !strings.Contains(said, laterVersion) {
			t.Errorf("%v says:\n%s", command, said)
		}
	}
	time.Sleep(2 * time.Second) // two heartbeats
	if after := left(t, masters); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// left returns the proxies' own keys and two locks on masters, as text.
func left(t *testing.T, masters []*redistest.Server) string {
	t.Helper()
	var all strings.Builder
	for _, master := range masters {
		stands, err := kit.AskIn(master, "0", "MGET", script.MarkerKey, script.RecordKey, script.RulesKey, "held", "free")
		kit.Must(t, err)
		fmt.Fprintf(&all, "%q\n", stands)
	}
	return all.String()
}

// run runs the program with a command for masters, and returns its output.
func run(t *testing.T, masters []*redistest.Server, command ...string) string {
	t.Helper()
	for _, url := range redistest.URLs(masters) {
		command = append(command, "--master", url)
	}
	out, _ := kit.Program(t, command...).CombinedOutput() // the command fails
	return string(out)
}
