//go:build integration

package guardschedules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestShortClockJump sets C's clock an hour fast for a short time between two probes. Keys that
// expire within that hour are lost.
func TestShortClockJump(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{30 * time.Second, time.Minute} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			clock := kit.NewClock(t)
			f := startFleet(t, 1, optionsFor(masterC, redistest.Options{Clock: clock}))
			l := f.lockOnThree(t, "k", ttl)
			f.awaitProbe(t, masterC)
			kit.Must(t, clock.Set(time.Hour))
			// The sleep is several times as long as a server needs to delete expired keys.
			time.Sleep(350 * time.Millisecond)
			kit.Eventually(t, func() error { return kit.CheckAbsent(f.masters[masterC], l.key) })
			kit.Must(t, clock.Set(0))
			f.wantLostOn(t, l, masterC)
			f.wantKept(t, l, kit.Connect(t, f.proxies[0]))
		})
	}
}

// TestJumpOfAllClocks advances the clocks of all masters by 90 seconds. A lock of a minute expires.
func TestJumpOfAllClocks(t *testing.T) {
	t.Parallel()
	clock := kit.NewClock(t)
	f := startFleet(t, 2, optionsForAll(redistest.Options{Clock: clock}))
	l := f.lockOnAll(t, "k", time.Minute)
	kit.Must(t, clock.Set(90*time.Second))
	f.wantLostOn(t, l, masterA, masterB, masterC, masterD, masterE)
	l.wantRefused(t, kit.Connect(t, f.proxies[1]), time.Minute)
}

// TestDrift checks that a master keeps its vote if its clock drifts by less than the validity
// allows for.
func TestDrift(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{1.005, 0.995} {
		t.Run(fmt.Sprint("×", rate), func(t *testing.T) {
			t.Parallel()
			clock := kit.NewClock(t)
			kit.Must(t, clock.Drift(rate))
			f := startFleet(t, 1, optionsFor(masterC, redistest.Options{Clock: clock}))
			f.wantNoQuarantine(t, 30*time.Second)
			f.wantVoting(t, masterCount)
		})
	}
}

// TestBootClock restarts all masters without their data, with clocks two hours slow as on a machine
// without a battery. The clocks are corrected before a proxy probes them. A running proxy has
// granted a lock of a minute.
func TestBootClock(t *testing.T) {
	t.Parallel()
	clock := kit.NewClock(t)
	f := startFleet(t, 2, optionsForAll(redistest.Options{Clock: clock}))
	l := f.lockOnAll(t, "k", time.Minute)
	masters := []int{masterA, masterB, masterC, masterD, masterE}
	f.cutOff(t, masters...)
	kit.Must(t, clock.Set(-2*time.Hour))
	for _, master := range f.masters {
		kit.Must(t, master.Restart())
	}
	kit.Must(t, clock.Set(0))
	f.reconnect(t, masters...)
	l.wantRefused(t, kit.Connect(t, f.proxies[1]), time.Minute)
}

// wantNoQuarantine fails the test if the last proxy sees a master in quarantine or unfit within
// the given time. A master may miss probes, because the machine is busy.
func (f *fleet) wantNoQuarantine(t *testing.T, length time.Duration) {
	t.Helper()
	client := f.statusClients[len(f.statusClients)-1]
	for deadline := time.Now().Add(length); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		if strings.Contains(info, "state=quarantine") || strings.Contains(info, "state=unfit") {
			t.Fatalf("a master is in quarantine or unfit: %v", info)
		}
	}
}
