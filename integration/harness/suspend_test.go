package harness

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestClockOfSuspendedProxy checks that the uptime of a suspended proxy, by its own clock,
// counts only the time in which it ran. The uptime of a paused proxy counts all time.
func TestClockOfSuspendedProxy(t *testing.T) {
	master := redistest.New(t, redistest.Options{})
	proxy, err := StartProxy(ProxyOptions{Masters: []string{master.URL()}, Args: longTimeoutArgs()})
	must(t, err)
	defer proxy.Close()
	client := dial(t, proxy.Addr())
	const pause = 3 * time.Second
	for range 2 {
		before := uptime(t, client)
		suspension, err := proxy.Suspend()
		if errors.Is(err, ErrNoSuspend) {
			t.Skipf("SKIPPED, NOT TESTED: %v", err)
		}
		must(t, err)
		time.Sleep(pause + quietTime) // the fault lasts
		must(t, suspension.Resume())
		if missed := uptime(t, client) - before; missed > 2 {
			t.Errorf("suspended for %v, and up for %d s meanwhile", pause, missed)
		}
	}
	before := uptime(t, client)
	must(t, proxy.Pause())
	time.Sleep(pause) // the fault lasts
	must(t, proxy.Continue())
	if up := uptime(t, client) - before; up < 3 {
		t.Errorf("paused for %v, and up for %d s meanwhile", pause, up)
	}
}

// uptime returns the proxy's uptime by its own clock, in seconds.
func uptime(t *testing.T, client *redistest.Client) int {
	t.Helper()
	info, err := client.Do("PROXY", "INFO")
	must(t, err)
	match := regexp.MustCompile(`proxy_uptime_in_seconds:(\d+)`).FindStringSubmatch(fmt.Sprint(info))
	if match == nil {
		t.Fatalf("no uptime in %v", info)
	}
	seconds, err := strconv.Atoi(match[1])
	must(t, err)
	return seconds
}
