//go:build integration

package moving

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// wantUpstreamLocks waits until lock keys can be used again, without a command of an operator, and
// checks that the locks are at the upstream.
func (r *rig) wantUpstreamLocks(proxy int, key string) {
	r.t.Helper()
	startedAt := time.Now()
	kit.Want(r.t, kit.Connect(r.t, r.proxies[proxy]), "OK", "SET", key, "me", "NX", "PX", "60000")
	r.t.Logf("lock keys could be used again after %v", time.Since(startedAt))
	if got := r.keysAtUpstream(); len(got) == 0 {
		r.t.Errorf("the locks are not at the upstream")
	}
}

// TestKilledMover kills the proxy that moves the locks, after the move is decided. The locks stay
// at the upstream, without an operator's command.
func TestKilledMover(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	clientA, _ := r.clients()
	for i := range 3000 { // so that copying takes a while
		kit.Want(t, clientA, "OK", "SET", fmt.Sprint("lock:", i), "me", "NX", "PX", "600000")
	}
	moveErr := make(chan error, 1)
	go func() { _, err := r.move(0); moveErr <- err }()
	_, err := r.proxies[0].WaitLog("decided: to-masters", kit.WaitLimit)
	kit.Must(t, err)
	kit.Must(t, r.proxies[0].Kill())
	if err := <-moveErr; err == nil {
		t.Fatal("the move was done")
	}
	r.wantUpstreamLocks(1, "lock:a")
	kit.Want(t, kit.Connect(t, r.proxies[1]), nil, "SET", "lock:0", "you", "NX", "PX", "60000")
	r.restart(0)
	r.wantVoting()
	wantOutput(t, r.mustMove(1), "the locks are at the masters now: 3001 string")
}

// TestMastersPausedDuringMove stops most masters while the locks are copied, for longer than the
// proxy tries. The move fails, and reports where the locks are stored. The locks stay at the
// upstream when the masters continue, without an operator's command.
func TestMastersPausedDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, _ := r.clients()
	for i := range 1000 {
		kit.Want(t, clientA, "OK", "SET", fmt.Sprint("lock:", i), "me", "NX", "PX", "600000")
	}
	moveErr := make(chan error, 1)
	go func() { _, err := r.move(0); moveErr <- err }()
	_, err := r.proxies[0].WaitLog("decided: to-masters", kit.WaitLimit)
	kit.Must(t, err)
	for _, master := range r.masters[:3] {
		kit.Must(t, master.Pause())
	}
	if err := <-moveErr; err == nil || !strings.Contains(err.Error(), "the locks are at the upstream, and stay there") {
		t.Errorf("the move said: %v", err)
	}
	for _, master := range r.masters[:3] {
		kit.Must(t, master.Continue())
	}
	r.wantUpstreamLocks(0, "lock:a")
	r.wantUpstreamLocks(1, "lock:b")
}
