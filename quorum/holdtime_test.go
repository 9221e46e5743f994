package quorum

import (
	"testing"
	"time"
)

// TestHoldTimes checks the time for which a client held a lock that it has extended twice, beyond
// its first TTL.
func TestHoldTimes(t *testing.T) {
	for name, c := range map[string]struct {
		key   Key
		slots int
		// between runs between the two extensions.
		between func(b *fixture, other *Locker, key Key)
	}{
		"one client": {key: job},
		"one client, extended at another proxy, too": {key: job, between: func(b *fixture, other *Locker, key Key) {
			_, err := other.Extend(b.Context(), key, token, 20*time.Second)
			b.wantErr(err, nil)
		}},
		"the only holder": {key: job, slots: 2},
		"one of two holders": {key: job, slots: 2, between: func(b *fixture, other *Locker, key Key) {
			_, err := other.Lock(b.Context(), LockRequest{Keys: []Key{key}, Token: rival, Slots: 2, TTL: time.Hour})
			b.wantErr(err, nil)
		}},
		"a key with a tag":             {key: Key{Name: "a:{T}", Tag: "T"}},
		"a holder of a key with a tag": {key: Key{Name: "a:{T}", Tag: "T"}, slots: Unlimited},
		"a key of another database":    {key: Key{DB: 3, Name: "job"}},
		"one of seven holders there":   {key: Key{DB: 3, Name: "job"}, slots: 7},
	} {
		t.Run(name, func(t *testing.T) {
			runInBubble(t, 3, func(b *fixture) {
				opts := Options{Masters: []string{"redis://m0:1", "redis://m1:1", "redis://m2:1"}, Tagged: true}
				l, other := NewLocker(b.connect(opts)), NewLocker(b.connect(opts))
				held := map[Key]time.Duration{}
				l.ObserveReleases(func(key Key, d time.Duration) { held[key] += d })
				extend := func() {
					_, err := l.Extend(b.Context(), c.key, token, 10*time.Second)
					b.wantErr(err, nil)
				}
				_, err := l.Lock(b.Context(), LockRequest{Keys: []Key{c.key}, Token: token, Slots: c.slots, TTL: 10 * time.Second})
				b.wantErr(err, nil)
				time.Sleep(6 * time.Second)
				extend()
				if c.between != nil {
					c.between(b, other, c.key)
				}
				time.Sleep(6 * time.Second)
				extend()
				time.Sleep(3500 * time.Millisecond)
				b.wantErr(l.Unlock(b.Context(), c.key, token), nil)
				if got := held[c.key]; len(held) != 1 || got.Truncate(time.Second) != 15*time.Second {
					b.Errorf("got %v, want 15 s for %v", held, c.key)
				}
			})
		})
	}
}

// TestNoHoldTime checks that a lock has no hold time if another proxy granted it, or if it ended
// without a release.
func TestNoHoldTime(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.locker.ObserveReleases(func(key Key, d time.Duration) { b.Errorf("%v was held for %v", key, d) })
		for _, slots := range []int{0, 2} {
			b.wantErr(b.lockFor(other, token, slots, 10*time.Second), nil)
			_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
			b.wantErr(err, nil)
			b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)

			b.wantErr(b.lockFor(b.locker, token, slots, time.Second), nil)
			time.Sleep(2 * time.Second)
			b.wantErr(b.locker.Unlock(b.Context(), job, token), ErrNotHeld)
		}
		// The same token as that of an expired lock.
		b.wantErr(b.lockFor(b.locker, token, 0, time.Second), nil)
		time.Sleep(2 * time.Second)
		b.wantErr(b.lockFor(other, token, 0, time.Minute), nil)
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
	})
}
