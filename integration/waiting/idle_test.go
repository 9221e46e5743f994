//go:build integration

package waiting

import (
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestIdle: 200 clients of two proxies wait for four locks, and the masters are asked nothing that they are not asked without them, but
// signs of life of the watches.
func TestIdle(t *testing.T) {
	const window = 4 * time.Second
	f := start(t, 2)
	f.WantVoting(t, 5)
	usual := map[string]bool{"ping": true}
	for name := range during(t, f, window) {
		usual[name] = true
	}
	holder := kit.Connect(t, f.Proxies[0])
	for key := range 4 {
		kit.WantGrant(t, holder, "LOCK", "k"+strconv.Itoa(key), "holder", "PX", forLong)
	}
	for i := range 200 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k"+strconv.Itoa(i/2%4), "token", "PX", forLong, "BLOCK", "600000")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 100)
	}
	rest(t, f.Masters...)
	for name, times := range during(t, f, window) {
		if !usual[name] {
			t.Errorf("%s, %d times", name, times)
		}
	}
	if asked := about(t, f.Masters, window); len(asked) > 0 {
		t.Errorf("%d commands, such as %s", len(asked), asked[0])
	}
}

// during are the commands that all masters do within a window.
func during(t *testing.T, f *kit.Fleet, window time.Duration) map[string]int {
	t.Helper()
	for _, master := range f.Masters {
		kit.Must(t, kit.Tell(master, "CONFIG", "RESETSTAT"))
	}
	time.Sleep(window)
	all := map[string]int{}
	for _, master := range f.Masters {
		for name, n := range commands(t, master) {
			all[name] += n
		}
	}
	return all
}
