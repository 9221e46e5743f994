//go:build integration

package lockkeys

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLongValues checks that a value of any length is replaced completely. One proxy, which cannot
// reach the first or the last master, writes the value. Another proxy, which reaches all masters,
// reads the value alone and together with other values. All masters return 8 KB of the value, and
// one master returns the rest.
//
// The longest value is much longer than the limit of a long operation. Even with ten concurrent
// tasks, a machine can send it to a majority, one master after another, within the 600 ms of a
// round.
func TestLongValues(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startLockKeyFleet(t, 2)
	writer, reader := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Want(t, writer, "OK", "SET", "lock:short", "me", "PX", "600000")
	for _, size := range []int{16, 8000, 8192, 9000, 40_000, 100_000} {
		for n, master := range []int{0, 4, 0} {
			key, before, after := fmt.Sprint("lock:", n, ":", size), strings.Repeat("before__", size/8),
				strings.Repeat("after___", size/8)
			kit.Want(t, writer, "OK", "SET", key, before, "PX", "600000")
			kit.Want(t, reader, before, "GET", key)
			kit.Must(t, f.Links[0][master].Cut())
			kit.Want(t, writer, "OK", "SET", key, after, "PX", "600000")
			if got := kit.Do(t, reader, "MGET", "lock:absent", key,
				"lock:short"); fmt.Sprint(got) != fmt.Sprint([]any{nil, after, "me"}) {
				t.Errorf("%d bytes, without master %d: %.40q…", size, master, fmt.Sprint(got))
			}
			kit.Want(t, reader, after, "GET", key)
			kit.Must(t, f.Links[0][master].Heal())
		}
	}
}
