package quorum

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// BenchmarkLockUnlock takes and releases locks on five masters with concurrent clients, each with
// its own key.
func BenchmarkLockUnlock(b *testing.B) {
	servers, err := redistest.StartMasters(5)
	b.Cleanup(func() { _ = redistest.CloseAll(servers) })
	if err != nil {
		b.Skip(err)
	}
	l := NewLocker(runCluster(b, Options{Masters: redistest.URLs(servers), FreshStart: true}))
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(clients)
			var names atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				key := Key{Name: fmt.Sprint("job:", names.Add(1))}
				for pb.Next() {
					if _, err := l.Lock(b.Context(), LockRequest{Keys: []Key{key}, Token: token, TTL: time.Minute}); err != nil {
						b.Error(err)
					}
					if err := l.Unlock(b.Context(), key, token); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
