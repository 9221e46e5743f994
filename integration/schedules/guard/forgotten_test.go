//go:build integration

package guardschedules

import (
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestFlushWithoutStatistics flushes all masters, and resets the statistics of their commands, as
// if the masters had never deleted data. They have been up for longer than any lock lasts. The
// proxy that knew them ends. A new proxy must not count their quarantine from their start.
func TestFlushWithoutStatistics(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	f := startFleet(t, 1, nil, "--max-ttl", ttl.String())
	time.Sleep(ttl + 3*time.Second) // the masters must be older than any lock
	l := f.lockOnAll(t, "k", ttl)
	kit.Must(t, f.proxies[0].Kill())
	for _, master := range f.masters {
		mustSend(t, master, "FLUSHALL")
		mustSend(t, master, "CONFIG", "RESETSTAT")
	}
	restarted := f.startProxy(t, "--max-ttl", ttl.String(), "--fresh-start=false")
	rival := kit.Connect(t, restarted)
	l.wantRefused(t, rival, ttl)
	l.wantFree(t, rival) // the quarantine ends
}

// TestFreshStartWithRunningProxy starts the proxies with --fresh-start, as in docker-compose.yml:
// if all masters are empty, they are new. All masters lose their data between two probes. A second
// proxy starts; the first proxy has granted a lock of a minute and keeps running. The running proxy
// probes each master once a second; the test pauses it for half a second, before its next probe.
func TestFreshStartWithRunningProxy(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, nil, "--fresh-start")
	l := f.lockOnAll(t, "k", time.Minute)
	kit.Must(t, f.proxies[0].Pause())
	for _, master := range f.masters {
		mustSend(t, master, "FLUSHALL")
	}
	resume := time.AfterFunc(time.Second/2, func() { _ = f.proxies[0].Continue() })
	defer resume.Stop()
	restarted := f.startProxy(t, "--fresh-start")
	l.wantRefused(t, kit.Connect(t, restarted), time.Minute)
}
