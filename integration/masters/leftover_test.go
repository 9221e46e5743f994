//go:build integration

package masters

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestChangeLeavesNoLockBehind: locks that nobody else wants, asked for while the masters are changed, are granted, or it is said that this is not
// known: then they are free soon after. They are taken by ballot, since they were removed by one a moment ago.
func TestChangeLeavesNoLockBehind(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	var over atomic.Bool
	var clients sync.WaitGroup
	var mu sync.Mutex
	var unknown []string
	for i := range 16 {
		client := kit.Connect(t, r.proxies[i%2])
		clients.Go(func() {
			for key, n := "", 0; !over.Load(); {
				if key == "" {
					key, n = fmt.Sprintf("k-%d-%d", i, n), n+1
				}
				reply, err := client.Do("LOCK", key, "t", "PX", "600000")
				failure, failed := reply.(redistest.RespError)
				switch {
				case err != nil, failed && !strings.HasPrefix(string(failure), "NOQUORUM "):
					t.Errorf("LOCK: %v, %v", reply, err)
					return
				case failed:
					mu.Lock()
					unknown = append(unknown, key)
					mu.Unlock()
					key = ""
				case reply == nil:
					t.Errorf("LOCK of %s, which nobody else wants, is refused", key)
					key = ""
				default:
					_, _ = client.Do("SET", key, "u", "XX", "PX", "600000")
					if removed, _ := client.Do("DEL", key); removed != any(int64(1)) {
						key = "" // it is not known what it holds
					}
				}
			}
		})
	}
	for n := range 10 {
		r.change(0, 1, 2+(n+1)%2)
	}
	over.Store(true)
	clients.Wait()
	t.Logf("%d LOCKs of which the outcome was not known", len(unknown))
	asked := kit.Connect(t, r.proxies[1])
	for _, key := range unknown {
		kit.Settles(t, func() error {
			if reply, err := asked.Do("GET", key); err != nil || reply != nil {
				return fmt.Errorf("%s is held: %v, %v", key, reply, err)
			}
			return nil
		})
	}
}
