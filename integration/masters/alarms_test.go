//go:build integration

package masters

import (
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/integration/kit"
)

// TestAlarmsDuringChange checks that each proxy logs one line at the beginning of a change of the
// masters, and one line at its end. A further line reports that its configuration was reloaded.
func TestAlarmsDuringChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	for _, proxy := range r.proxies {
		_, err := proxy.WaitLog("msg=ready", kit.WaitLimit)
		kit.Must(t, err)
	}
	var want []string
	for _, masters := range [][]int{{0, 1, 3}, {0, 4, 3}} {
		r.change(masters...)
		want = append(want, "INFO the masters are being changed", "INFO configuration reloaded",
			"INFO the masters were changed")
		r.wantLogged(want)
	}
	kit.Must(t, r.servers[4].Kill())
	want = append(want, "WARN master down")
	r.wantLogged(want)
}

// wantLogged waits until each proxy has logged exactly the messages in want since it was ready, in
// any order. It ignores the message that a master caught up.
func (r *rig) wantLogged(want []string) {
	r.t.Helper()
	want = slices.Sorted(slices.Values(want))
	for _, proxy := range r.proxies {
		kit.Eventually(r.t, func() error {
			got := slices.DeleteFunc(kit.MessagesAfter(proxy, "msg=ready"),
				func(message string) bool { return message == "INFO master caught up" })
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
}
