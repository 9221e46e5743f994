//go:build integration

package lockkeys

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLongValues: a value is replaced through a proxy that does not reach one of the masters, the
// first or the last, and read through another proxy that does, by itself and beside others,
// whatever its length: what is read is the whole of the new one. All masters are asked for 8 KB of
// it, and one for the rest. The longest is far above where an operation is long, and such that a
// machine which does ten things at once gets it to a majority in the 600 ms of a round, one master
// after another: while one of them does not answer, one more may be busy with what is long.
func TestLongValues(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startLockKeyFleet(t, 2)
	writer, reader := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Want(t, writer, "OK", "SET", "lock:short", "me", "PX", "600000")
	for _, size := range []int{16, 8000, 8192, 9000, 40_000, 100_000} {
		for n, master := range []int{0, 4, 0} {
			key, before, after := fmt.Sprint("lock:", n, ":", size), strings.Repeat("before__", size/8), strings.Repeat("after___", size/8)
			kit.Want(t, writer, "OK", "SET", key, before, "PX", "600000")
			kit.Want(t, reader, before, "GET", key)
			kit.Must(t, f.Links[0][master].Cut())
			kit.Want(t, writer, "OK", "SET", key, after, "PX", "600000")
			if got := kit.Do(t, reader, "MGET", "lock:absent", key, "lock:short"); fmt.Sprint(got) != fmt.Sprint([]any{nil, after, "me"}) {
				t.Errorf("%d bytes, without master %d: %.40q…", size, master, fmt.Sprint(got))
			}
			kit.Want(t, reader, after, "GET", key)
			kit.Must(t, f.Links[0][master].Heal())
		}
	}
}
