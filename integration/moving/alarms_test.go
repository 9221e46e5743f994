//go:build integration

package moving

import (
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/integration/kit"
)

// TestAlarmsDuringMove checks that each proxy logs one line at the beginning of a move and one at
// its end. The steps of the move are logged at debug level only. A master that is lost after the
// moves is reported once.
func TestAlarmsDuringMove(t *testing.T) {
	r := startRig(t)
	for _, proxy := range r.proxies {
		_, err := proxy.WaitLog("msg=ready", kit.WaitLimit)
		kit.Must(t, err)
	}
	var want []string
	for _, flags := range [][]string{nil, {"--back"}, nil} {
		r.mustMove(0, flags...)
		want = append(want, "INFO the locks are being moved", "INFO the move of the locks has ended")
		r.wantLogged(want...)
	}
	kit.Must(t, r.masters[0].Kill())
	r.wantLogged(append(want, "WARN master down")...)
	client := kit.Connect(t, r.proxies[0])
	kit.WantGrant(t, client, "LOCK", "lock:a", "t", "PX", "1000")
}

// wantLogged waits until each proxy has logged exactly the messages in want since it was ready, in
// any order. It ignores debug messages.
func (r *rig) wantLogged(want ...string) {
	r.t.Helper()
	want = slices.Clone(want)
	slices.Sort(want)
	for _, proxy := range r.proxies {
		kit.Eventually(r.t, func() error {
			got := kit.MessagesAfter(proxy, "msg=ready")
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
}
