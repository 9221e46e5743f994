//go:build integration

package guardschedules

import (
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestFlushedUncounted: all masters are flushed, and the count of their commands is set to zero, so
// that they look as if they had never thrown anything away. They have been up for longer than any
// lock lasts. The proxy that knew them ends; a new one must not count their quarantine from their
// start.
func TestFlushedUncounted(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	f := startFleet(t, 1, nil, "--max-ttl", ttl.String())
	time.Sleep(ttl + 3*time.Second) // the masters have to be that old
	l := f.hold(t, "k", ttl)
	kit.Must(t, f.proxies[0].Kill())
	for _, master := range f.masters {
		tell(t, master, "FLUSHALL")
		tell(t, master, "CONFIG", "RESETSTAT")
	}
	after := f.startProxy(t, "--max-ttl", ttl.String(), "--fresh-start=false")
	rival := kit.Connect(t, after)
	l.wantRefused(t, rival, ttl)
	l.wantFree(t, rival) // not for ever
}

// TestFreshCompose: the proxies were told that masters which are all empty are new ones, as in
// docker-compose.yml. All masters lose their data between two looks, and one proxy restarts beside
// another that lives and has granted a lock of a minute. That one looks at each master once a
// second; here it is held up for a moment, so that it surely does not do so in the first half of
// one.
func TestFreshCompose(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, nil, "--fresh-start")
	l := f.hold(t, "k", time.Minute)
	kit.Must(t, f.proxies[0].Pause())
	for _, master := range f.masters {
		tell(t, master, "FLUSHALL")
	}
	goesOn := time.AfterFunc(time.Second/2, func() { _ = f.proxies[0].Continue() })
	defer goesOn.Stop()
	restarted := f.startProxy(t, "--fresh-start")
	l.wantRefused(t, kit.Connect(t, restarted), time.Minute)
}
