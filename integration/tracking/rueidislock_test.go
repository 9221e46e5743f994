//go:build integration

package tracking

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// newLocker returns a rueidislock client of a proxy. It waits for invalidations, and has no other
// way to find out that a lock is free.
func newLocker(t *testing.T, proxy *harness.Proxy, noLoop bool) rueidislock.Locker {
	t.Helper()
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		KeyPrefix: "lock", KeyValidity: 4 * time.Second, TryNextAfter: time.Second, NoLoopTracking: noLoop,
		ClientOption: rueidis.ClientOption{InitAddress: []string{proxy.Addr()}, ForceSingleClient: true},
	})
	kit.Must(t, err)
	t.Cleanup(l.Close)
	return l
}

// TestRueidislock checks that a waiter gets the lock when the holder releases it through another
// proxy, repeatedly. A holder is notified if its lock is force-unlocked.
func TestRueidislock(t *testing.T) {
	redistest.SkipShort(t)
	runInBothModes(t, func(t *testing.T, f *kit.Fleet) {
		for name, noLoop := range map[string]bool{"default": false, "noloop": true} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), kit.WaitLimit)
				defer cancel()
				lockers := []rueidislock.Locker{newLocker(t, f.Proxies[0], noLoop), newLocker(t, f.Proxies[1], noLoop)}
				type grant struct {
					by      int
					ctx     context.Context
					release context.CancelFunc
				}
				grants := make(chan grant)
				takeLock := func(index int) {
					lockCtx, release, err := lockers[index].WithContext(ctx, "job")
					if err != nil {
						t.Error(err)
						close(grants)
						return
					}
					grants <- grant{index, lockCtx, release}
				}
				go takeLock(0)
				holder, ok := <-grants
				for round := range 6 {
					if !ok {
						t.FailNow()
					}
					wait := 300 * time.Millisecond
					if round == 0 {
						wait = 5 * time.Second // rueidislock extends the lock meanwhile
					}
					go takeLock(1 - holder.by)
					select {
					case <-grants:
						t.Fatal("two have the lock")
					case <-time.After(wait):
					}
					if err := holder.ctx.Err(); err != nil {
						t.Fatalf("the lock was lost: %v", err)
					}
					holder.release()
					holder, ok = <-grants
				}
				_, release, err := lockers[1-holder.by].ForceWithContext(ctx, "job")
				kit.Must(t, err)
				<-holder.ctx.Done()
				release()
				holder.release()
			})
		}
	})
}
