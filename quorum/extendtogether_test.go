package quorum

import (
	"testing"
	"time"
)

// TestExtendTogether checks that one round extends the locks that this proxy granted, and whose
// client is the only holder. Extend extends the other locks, if it can.
func TestExtendTogether(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		take := func(l *Locker, key Key, token string, slots int) Key {
			b.Helper()
			_, err := l.Lock(b.Context(), LockRequest{Keys: []Key{key}, Token: token, Slots: slots, TTL: time.Minute})
			b.wantErr(err, nil)
			return key
		}
		own, tagged := take(b.locker, Key{Name: "own"}, "t", 0), take(b.locker, Key{Name: "k:{g}", Tag: "g"}, "t", 0)
		alone, two := take(b.locker, Key{Name: "alone"}, "t", 2), take(b.locker, Key{Name: "two"}, "t", 2)
		take(other, two, "u", 2)
		inDB1, foreign := take(b.locker, Key{Name: "own", DB: 1}, "t", 0), take(other, Key{Name: "foreign"}, "t", 0)
		for _, test := range []struct {
			name           string
			request        ExtendRequest
			together, held bool
		}{
			{"own", ExtendRequest{own, "t", time.Hour}, true, true},
			{"another token", ExtendRequest{own, "x", time.Hour}, false, false},
			{"another proxy's", ExtendRequest{foreign, "t", time.Hour}, false, true},
			{"with a tag", ExtendRequest{tagged, "t", time.Hour}, false, true},
			{"the only holder of two", ExtendRequest{alone.OfHolder("t"), "t", time.Hour}, true, true},
			{"one of two holders", ExtendRequest{two.OfHolder("t"), "t", time.Hour}, false, true},
			{"another database", ExtendRequest{inDB1, "t", time.Hour}, false, true},
			{"a short TTL", ExtendRequest{own, "t", time.Millisecond}, false, false},
			{"a reserved key", ExtendRequest{maxTTLKey, "t", time.Hour}, false, false},
		} {
			leases := b.locker.ExtendTogether(b.Context(), []ExtendRequest{{own, "t", time.Hour}, test.request})
			if leases[0].Validity < 59*time.Minute {
				b.Errorf("%s: the lock next to it has %+v", test.name, leases[0])
			}
			if got := !leases[1].LeaseStart.IsZero(); got != test.together || got && leases[1].Validity < 59*time.Minute {
				b.Errorf("%s: %+v", test.name, leases[1])
			}
			if _, err := b.locker.Extend(b.Context(), test.request.Key, "t", time.Hour); test.held && err != nil {
				b.Errorf("%s: EXTEND: %v", test.name, err)
			}
		}
	})
}

// TestExtendTogetherWithoutQuorum checks that a round extends nothing without a majority.
func TestExtendTogetherWithoutQuorum(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		_, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: "t", TTL: time.Minute})
		b.wantErr(err, nil)
		for _, m := range b.masters[1:] {
			m.loseReply()
		}
		leases := b.locker.ExtendTogether(b.Context(), []ExtendRequest{{job, "t", time.Hour}})
		if !leases[0].LeaseStart.IsZero() {
			b.Errorf("%+v", leases[0])
		}
	})
}
