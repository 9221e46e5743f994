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

const laterVersionError = "proxies of a later version use it: upgrade this proxy"

// TestMastersOfALaterVersion checks that masters do not vote if their markers are of a later
// protocol, which this proxy cannot read. The proxy reports why. Neither the proxy nor the
// operator's commands change anything on these masters. A single such master counts as unavailable.
func TestMastersOfALaterVersion(t *testing.T) {
	redistest.SkipShort(t)
	masters := kit.StartMasters(t)
	firstProxy := kit.StartProxy(t, redistest.URLs(masters))
	(&kit.Fleet{Proxies: []*harness.Proxy{firstProxy}}).WantVoting(t, len(masters))
	kit.WantGrant(t, kit.Connect(t, firstProxy), "LOCK", "held", "me", "PX", "600000")
	kit.Eventually(t, func() error { // on all masters, since one of them will not vote
		for _, master := range masters {
			if reply, err := kit.QueryDatabase(master, "0", "EXISTS", "held"); err != nil || reply != any(int64(1)) {
				return fmt.Errorf("EXISTS: %v, %w", reply, err)
			}
		}
		return nil
	})
	kit.Must(t, firstProxy.Close())
	forgeMarker := func(master *redistest.Server) {
		stored, err := kit.QueryDatabase(master, "0", "GET", script.MarkerKey)
		kit.Must(t, err)
		words := strings.Split(stored.(string), " ")
		if marker.ProtocolOf(stored.(string), "") != marker.Protocol {
			t.Fatalf("a marker without the protocol: %q", stored)
		}
		words[2] = strings.TrimSuffix(words[2], fmt.Sprint("-", marker.Protocol)) + fmt.Sprint("-", marker.Protocol+1)
		kit.Must(t, kit.SendToMaster(master, "SET", script.MarkerKey, strings.Join(words, " ")+" and what is new"))
	}
	forgeMarker(masters[0])
	secondProxy := kit.StartProxy(t, redistest.URLs(masters))
	client := kit.Connect(t, secondProxy)
	kit.Eventually(t, func() error {
		if reply := kit.Do(t, client, "LOCK", "held", "other", "PX", "1000"); reply != nil {
			return fmt.Errorf("LOCK of what is held: %v", reply)
		}
		return nil
	})
	kit.Must(t, secondProxy.Close())
	for _, master := range masters[1:] {
		forgeMarker(master)
	}
	keysBefore := ownKeys(t, masters)
	proxy := kit.StartProxy(t, redistest.URLs(masters))
	client = kit.Connect(t, proxy)
	reply := kit.ReplyText(kit.Do(t, client, "LOCK", "free", "me", "PX", "1000"))
	if !strings.HasPrefix(reply, "NOQUORUM 0 of ") || !strings.Contains(reply, laterVersionError) {
		t.Errorf("LOCK: %s", reply)
	}
	for _, command := range [][]string{{"check"}, {"init", "--longest-ttl", "1m"}, {"init", "--new-settings"}} {
		if output := runProgram(t, masters, command...); !strings.Contains(output, laterVersionError) {
			t.Errorf("%v says:\n%s", command, output)
		}
	}
	time.Sleep(2 * time.Second) // two heartbeats
	if keysAfter := ownKeys(t, masters); keysAfter != keysBefore {
		t.Errorf("before:\n%s\nafter:\n%s", keysBefore, keysAfter)
	}
}

// ownKeys returns the proxies' own keys and two locks on masters, as text.
func ownKeys(t *testing.T, masters []*redistest.Server) string {
	t.Helper()
	var text strings.Builder
	for _, master := range masters {
		stored, err := kit.QueryDatabase(master, "0", "MGET", script.MarkerKey, script.RecordKey, script.RulesKey, "held", "free")
		kit.Must(t, err)
		fmt.Fprintf(&text, "%q\n", stored)
	}
	return text.String()
}

// runProgram runs the program with a command for masters, and returns its output.
func runProgram(t *testing.T, masters []*redistest.Server, command ...string) string {
	t.Helper()
	for _, url := range redistest.URLs(masters) {
		command = append(command, "--master", url)
	}
	output, _ := kit.ProxyCommand(t, command...).CombinedOutput() // the command fails
	return string(output)
}
