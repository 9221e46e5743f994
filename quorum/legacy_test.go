package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// withLegacy gives the bench a cluster with a legacy server, the last of its fakes.
func withLegacy(t *testing.T, masters int, test func(b *bench, legacy *fakeMaster)) {
	t.Helper()
	inBubble(t, masters+1, func(b *bench) {
		opts := Options{Rand: func() float64 { return 0.5 }, Legacy: "redis://legacy:6379"}
		for i := range masters {
			opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
		}
		b.cluster = b.connect(opts)
		b.locker = NewLocker(b.cluster)
		test(b, b.masters[masters])
	})
}

func TestLegacyServerHasToAgree(t *testing.T) {
	withLegacy(t, 3, func(b *bench, legacy *fakeMaster) {
		legacy.set(func(f *fakeMaster) { f.put(job, lasting(rival, time.Minute)) })
		_, err := b.lock(token, time.Minute)
		b.wantErr(err, ErrHeld) // by a client that locks there alone
		b.expect("", "", "", rival)
		h, err := b.cluster.Read(b.Context(), job)
		b.wantErr(err, nil)
		if h != (Holding{Held: true, Value: rival, Left: time.Minute}) {
			b.Errorf("read %+v, want what the legacy server holds", h)
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, rival), nil) // its owner is behind the proxy by now
		b.expect("", "", "", "")
		b.mustLock(token, time.Minute)
		b.expect(token, token, token, token)
		legacy.set(func(f *fakeMaster) { delete(f.keys, job) })
		_, err = b.locker.Extend(b.Context(), job, token, time.Hour)
		b.wantErr(err, ErrNotHeld) // others may take it there
	})
}

func TestLegacyServerDown(t *testing.T) {
	withLegacy(t, 3, func(b *bench, legacy *fakeMaster) {
		legacy.set(func(f *fakeMaster) { f.refuses = true })
		_, err := b.lock(token, time.Minute)
		var none *NoQuorumError
		if !errors.As(err, &none) || none.Error() != "the legacy lock server did not answer: legacy:6379: connection refused" {
			b.Errorf("got %v", err)
		}
		b.expect("", "", "", "")
	})
}

func TestLegacyServerDoesNotMakeAMajority(t *testing.T) {
	withLegacy(t, 3, func(b *bench, legacy *fakeMaster) {
		b.plant(rival, time.Minute, 0, 1)
		_, err := b.lock(token, time.Minute)
		b.wantErr(err, ErrHeld)
		b.expect(rival, rival, "", "")
	})
}
