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
	set := func(key, value string) {
		if reply, _ := kit.DoInTime(t, writer, "SET", key, value, "PX", "600000"); reply != "OK" {
			t.Fatalf("SET %s: got %v", key, reply)
		}
	}
	set("lock:short", "me")
	for _, size := range []int{16, 8000, 8192, 9000, 40_000, 100_000} {
		for n, master := range []int{0, 4, 0} {
			key, before, after := fmt.Sprint("lock:", n, ":", size), strings.Repeat("before__", size/8),
				strings.Repeat("after___", size/8)
			set(key, before)
			kit.Want(t, reader, before, "GET", key)
			kit.Must(t, f.Links[0][master].Cut())
			set(key, after)
			if got := kit.Do(t, reader, "MGET", "lock:absent", key,
				"lock:short"); fmt.Sprint(got) != fmt.Sprint([]any{nil, after, "me"}) {
				t.Errorf("%d bytes, without master %d: %.40q…", size, master, fmt.Sprint(got))
			}
			kit.Want(t, reader, after, "GET", key)
			kit.Must(t, f.Links[0][master].Heal())
		}
	}
}
