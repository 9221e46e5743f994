//go:build integration

package guardschedules

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
)

// stopTime is the time for which a proxy is stopped.
const stopTime = 3 * time.Second

// TestStalledProxy stops one proxy for a while. Meanwhile a master begins to hang. If the proxy's
// own clock was stopped, too, the proxy then sees the clocks of four masters jump. It knows nothing
// about the fifth master. The proxy must not take the votes of these four masters from the other
// proxy. If only the process was stopped, its clock kept running, and the proxy sees no jump.
func TestStalledProxy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		stop func(*testing.T, *harness.Proxy) (resume func() error)
	}{{"stopped", pause}, {"suspended", suspend}} {
		t.Run(test.name, func(t *testing.T) {
			f := startFleet(t, 2, nil)
			// A minute is the time for which the masters would lose their votes.
			l := f.lockOnAll(t, "k", time.Minute)
			resume := test.stop(t, f.proxies[0])
			kit.Must(t, f.masters[masterE].Pause())
			t.Cleanup(func() { kit.Must(t, f.masters[masterE].Continue()) })
			time.Sleep(stopTime) // the fault lasts
			kit.Must(t, resume())
			f.wantNoQuarantine(t, stopTime) // at the other proxy
			for n := range 20 {
				key := fmt.Sprint("after", n)
				if _, granted := kit.Do(t, kit.Connect(t, f.proxies[1]), "LOCK", key, "token", "PX",
					"10000").(int64); !granted {
					t.Fatalf("LOCK %s is not granted by the other proxy", key)
				}
			}
			l.wantRefused(t, kit.Connect(t, f.proxies[1]), time.Second)
			f.wantVoting(t, masterCount-1)
		})
	}
}

func pause(t *testing.T, proxy *harness.Proxy) (resume func() error) {
	t.Helper()
	kit.Must(t, proxy.Pause())
	return proxy.Continue
}

func suspend(t *testing.T, proxy *harness.Proxy) (resume func() error) {
	t.Helper()
	suspension, err := proxy.Suspend()
	if errors.Is(err, harness.ErrNoSuspend) {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	kit.Must(t, err)
	return suspension.Resume
}
