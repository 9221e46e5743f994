package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/cell"
)

// withLegacy gives the bench a cluster with a legacy server, the last of its fakes.
func withLegacy(t *testing.T, test func(b *bench, legacy *fakeMaster)) {
	t.Helper()
	const masters = 3
	inBubble(t, masters+1, func(b *bench) {
		opts := Options{Legacy: "redis://legacy:6379"}
		for i := range masters {
			opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
		}
		b.cluster = b.connect(opts)
		b.locker = NewLocker(b.cluster)
		legacy := b.masters[masters]
		legacy.set(func(f *fakeMaster) { f.log = nil })
		test(b, legacy)
	})
}

// has puts a value there, as an old client does.
func (f *fakeMaster) has(key Key, value string, left time.Duration) {
	f.set(func(f *fakeMaster) { f.store(key.DB).Put(key.Name, foreign(value), left) })
}

func (f *fakeMaster) hasNot(key Key) {
	f.set(func(f *fakeMaster) { f.store(key.DB).Delete(key.Name) })
}

func TestLegacyServerHasToAgree(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		legacy.has(job, rival, time.Minute)
		_, err := b.lock(token, time.Minute)
		b.wantErr(err, ErrHeld) // by a client that locks there alone
		b.expect("", "", "", rival)
		looks, err := b.cluster.Read(b.Context(), []Key{job})
		b.wantErr(err, nil)
		if l := looks[0]; l.Value != rival || l.Left != time.Minute {
			b.Errorf("read %+v, want what the legacy server holds", l)
		}
		err = b.locker.Unlock(b.Context(), job, token)
		b.wantErr(err, ErrNotHeld)
		if errors.As(err, new(*InsteadError)) {
			b.Errorf("what the masters hold was told, which is not what there is: %#v", err)
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, rival), nil) // its owner is behind the proxy by now
		b.expect("", "", "", "")
		b.mustLock(token, time.Minute)
		b.expect(token, token, token, token)
		_, err = b.locker.Extend(b.Context(), job, token, time.Hour)
		b.wantErr(err, nil)
		legacy.hasNot(job)
		_, err = b.locker.Extend(b.Context(), job, token, time.Hour)
		b.wantErr(err, ErrNotHeld) // others may take it there
	})
}

// TestMastersDownBesideLegacyServer: where it is the masters that do not answer, each is named, as
// without a legacy server.
func TestMastersDownBesideLegacyServer(t *testing.T) {
	withLegacy(t, func(b *bench, _ *fakeMaster) {
		b.masters[0].away()
		b.masters[1].away()
		_, err := b.lock(token, time.Minute)
		const want = "1 of 3 masters answered, 2 needed: m0:6379: connection refused; m1:6379: connection refused"
		if got := b.wantNoQuorum(err).Error(); got != want {
			b.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestLegacyServerDown(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		b.mustLock(token, time.Minute)
		legacy.away()
		const want = "the legacy lock server did not answer: legacy:6379: connection refused"
		other := Key{Name: "other"}
		for name, err := range map[string]error{
			"LOCK":   errOf(b.cluster.Take(b.Context(), Taking{Keys: []Key{other}, Tokens: []string{token}, TTL: time.Minute})),
			"EXTEND": errOf(b.cluster.Extend(b.Context(), job, token, time.Hour)),
			"GET":    errOf(b.cluster.Read(b.Context(), []Key{job})),
			"SET":    errOf(b.cluster.Update(b.Context(), job, nil, put("x"))),
			"UNLOCK": b.cluster.Release(b.Context(), job, token),
		} {
			if got := b.wantNoQuorum(err).Error(); got != want {
				b.Errorf("%s: %s", name, got)
			}
		}
		synctest.Wait()
		if h := b.masters[0].holds("other"); h != "" {
			b.Errorf("what was not granted stands on a master: %s", h)
		}
	})
}

// put puts a value there, whatever is there.
func put(value string) func(Look) (Decision, error) {
	return func(Look) (Decision, error) { return Decision{Do: Put, Value: value, TTL: time.Minute}, nil }
}

// Whom the masters refuse, the legacy server never sees.
func TestLegacyServerIsAskedLast(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		b.plant(rival, time.Minute, 0, 1)
		_, err := b.lock(token, time.Minute)
		b.wantErr(err, ErrHeld)
		b.expect(rival, rival, "", "")
		legacy.set(func(f *fakeMaster) {
			if len(f.log) > 0 {
				b.Errorf("it was asked %v", f.log)
			}
		})
	})
}

// An old client's lock with the same value is not taken for one's own.
func TestLegacyEqualValues(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		legacy.has(job, "1", time.Minute)
		_, err := b.lock("1", time.Minute)
		b.wantErr(err, ErrHeld)
		b.expect("", "", "", "1")
	})
}

// An attempt whose answer comes when its caller has left is undone; one whose answer was
// lost ends with its time, because nobody can tell it from another's.
func TestLegacyUndo(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		legacy.slow(20 * time.Millisecond)
		ctx, leave := context.WithTimeout(b.Context(), 10*time.Millisecond)
		defer leave()
		_, err := b.locker.Lock(ctx, LockRequest{Key: job, Token: token, TTL: time.Minute})
		b.wantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		b.expect("", "", "", "")

		legacy.slow(0)
		legacy.loses()
		_, err = b.lock(token, time.Minute)
		b.wantNoQuorum(err)
		time.Sleep(30 * time.Second)
		b.expect("", "", "", token)
		time.Sleep(30 * time.Second)
		b.expect("", "", "", "")
	})
}

// Of several keys all are taken there, or none.
func TestLegacySeveralKeys(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		second := Key{Name: "second"}
		legacy.has(second, rival, time.Minute)
		both := Taking{Keys: []Key{job, second}, Tokens: []string{token, token}, TTL: time.Minute}
		_, err := b.cluster.Take(b.Context(), both)
		b.wantErr(err, ErrHeld)
		b.expect("", "", "", "")
		if h := legacy.holds("second"); h != rival {
			b.Errorf("the second one: %s", h)
		}
		legacy.hasNot(second)
		got, err := b.cluster.Take(b.Context(), both)
		b.wantErr(err, nil)
		b.cluster.Withdraw(both.Keys, both.Tokens, got)
		b.expect("", "", "", "")
	})
}

// What is granted is valid as of the last answer, not the masters'.
func TestLegacyValidity(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		legacy.slow(50 * time.Millisecond)
		const ttl, drift = 10 * time.Second, 100*time.Millisecond + 2*time.Millisecond
		got, err := b.lock(token, ttl)
		b.wantErr(err, nil)
		if want := ttl - 50*time.Millisecond - drift; got != want {
			b.Errorf("LOCK: valid for %v, want %v", got, want)
		}
		more, err := b.cluster.Extend(b.Context(), job, token, ttl)
		b.wantErr(err, nil)
		if want := ttl - 50*time.Millisecond - drift; more.Validity != want {
			b.Errorf("EXTEND: valid for %v, want %v", more.Validity, want)
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		_, err = b.lock(token, 45*time.Millisecond)
		if none := b.wantNoQuorum(err); none.Late != 50*time.Millisecond {
			b.Errorf("late by %v", none.Late)
		}
		time.Sleep(time.Second)
		b.expect("", "", "", "")
	})
}

func TestLegacyUpdate(t *testing.T) {
	for _, test := range []struct {
		name           string
		masters, there string // what they hold
		decision       Decision
		seen           string
		left           string // on all of them
	}{
		{"of nothing", "", "", Decision{Do: Put, Value: "new", TTL: time.Hour}, "", "new"},
		{"of a lock", "me", "me", Decision{Do: Put, Value: "new", TTL: time.Hour}, "me", "new*"},
		{"of an old client's", "", "old", Decision{Do: Put, Value: "new", TTL: time.Hour}, "old", "new"},
		{"of what differs", "me", "old", Decision{Do: Put, Value: "new", TTL: time.Hour}, "old", "new*"},
		{"that keeps the time", "me", "me", Decision{Do: Put, Value: "new", KeepTTL: true}, "me", "new*"},
		{"that removes", "me", "me", Decision{Do: Remove}, "me", "-*"},
		{"that removes an old client's", "", "old", Decision{Do: Remove}, "old", ""},
		{"that removes what is gone there", "me", "", Decision{Do: Remove}, "me", "-*"},
		{"that leaves it", "me", "me", Decision{}, "me", "me*"},
	} {
		t.Run(test.name, func(t *testing.T) {
			withLegacy(t, func(b *bench, legacy *fakeMaster) {
				if test.masters != "" {
					b.plant(test.masters, time.Minute, 0, 1, 2)
				}
				if test.there != "" {
					legacy.has(job, test.there, time.Minute)
				}
				seen := ""
				_, err := b.cluster.Update(b.Context(), job, nil, func(l Look) (Decision, error) { seen = l.Value; return test.decision, nil })
				b.wantErr(err, nil)
				if seen != test.seen {
					b.Errorf("it saw %q, want %q", seen, test.seen)
				}
				plain := map[string]string{"new*": "new", "-*": "", "me*": "me"}[test.left]
				if plain == "" && test.left != "-*" {
					plain = test.left
				}
				b.expect(test.left, test.left, test.left, plain)
			})
		})
	}
}

// An old client is quicker: the change is made from what it left, and the run that stands
// is told among all.
func TestLegacyUpdateOvertaken(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		legacy.has(job, "a", time.Minute)
		var seen []string
		out, err := b.cluster.Update(b.Context(), job, nil, func(l Look) (Decision, error) {
			seen = append(seen, l.Value)
			if len(seen) < 3 {
				legacy.has(job, fmt.Sprint("b", len(seen)), time.Minute)
			}
			return Decision{Do: Put, Value: l.Value + "+", TTL: time.Minute}, nil
		})
		b.wantErr(err, nil)
		if out.Decision.Value != "b2+" || len(seen) != 3 || seen[2] != "b2" {
			b.Errorf("%v of %q stands", out.Decision, seen)
		}
		b.expect("b2+", "b2+", "b2+", "b2+")
	})
}

// Where the change was made there, and cannot be made on the masters, nobody is told that
// it was not.
func TestLegacyUpdateHalfMade(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		for _, m := range b.masters[:3] {
			m.has(job, "direct", time.Minute) // a client of the masters themselves
		}
		_, err := b.cluster.Update(b.Context(), job, nil, put("new"))
		if none := b.wantNoQuorum(err); !none.Unclear {
			b.Error(none)
		}
	})
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		b.mustLock(token, time.Minute)
		_, err := b.cluster.Update(b.Context(), job, nil, func(Look) (Decision, error) {
			b.masters[0].away()
			b.masters[1].away()
			return Decision{Do: Put, Value: "new", TTL: time.Minute}, nil
		})
		b.wantNoQuorum(err)
	})
}

func TestLegacyUpdateForEverOvertaken(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		n := 0
		legacy.slow(10 * time.Millisecond)
		_, err := b.cluster.Update(b.Context(), job, nil, func(Look) (Decision, error) {
			n++
			legacy.has(job, fmt.Sprint(n), time.Minute)
			return Decision{Do: Put, Value: "new", TTL: time.Minute}, nil
		})
		b.wantErr(err, ErrContended)
		failed := errors.New("failed")
		_, err = b.cluster.Update(b.Context(), job, nil, func(Look) (Decision, error) { return Decision{}, failed })
		b.wantErr(err, failed)
	})
}

// TestWaitingForALockOfTheLegacyServer: who waits for it tries now and then. What it takes back from the masters each time, by ballot
// after a removal by ballot, does not wake it.
func TestWaitingForALockOfTheLegacyServer(t *testing.T) {
	withLegacy(t, func(b *bench, legacy *fakeMaster) {
		for _, m := range b.masters {
			m.slow(100 * time.Microsecond)
		}
		for _, do := range []Decision{{Do: Put, Value: token, TTL: time.Minute}, {Do: Remove}} {
			_, err := b.cluster.Update(b.Context(), job, nil, func(Look) (Decision, error) { return do, nil })
			b.wantErr(err, nil)
		}
		legacy.has(job, rival, time.Minute)
		legacy.set(func(f *fakeMaster) { f.log = nil })
		_, err := b.locker.Lock(b.Context(), LockRequest{Key: job, Token: token, TTL: time.Minute, Wait: time.Second})
		b.wantErr(err, ErrHeld)
		legacy.set(func(f *fakeMaster) {
			if n := len(f.log); n < 10 || n > 200 {
				b.Errorf("the legacy server was asked %d times in a second", n)
			}
		})
	})
}

// TestLegacyStorm lets clients of two proxies and old ones fight for one lock, while a
// master, or the legacy server, fails. There is never a second holder.
func TestLegacyStorm(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			withLegacy(t, func(b *bench, legacy *fakeMaster) {
				rnd := rand.New(rand.NewPCG(seed, 4))
				opts := Options{Legacy: "redis://legacy:6379", Masters: []string{"redis://m0:6379", "redis://m1:6379", "redis://m2:6379"}}
				g := &referee{bench: b}
				ctx, stop := context.WithTimeout(b.Context(), 20*time.Second)
				defer stop()
				var clients sync.WaitGroup
				for n, l := range []*Locker{b.locker, NewLocker(b.connect(opts)), b.locker} {
					seed := rnd.Uint64()
					clients.Go(func() { g.client(ctx, l, fmt.Sprint("client", n), rand.New(rand.NewPCG(seed, 2))) })
				}
				for n := range 2 {
					clients.Go(func() { g.oldClient(ctx, legacy, fmt.Sprint("old", n)) })
				}
				for ctx.Err() == nil {
					disturb(b, rnd)
				}
				clients.Wait()
				if g.grants < 50 {
					b.Errorf("only %d grants", g.grants)
				}
			})
		})
	}
}

// oldClient locks at the legacy server alone.
func (g *referee) oldClient(ctx context.Context, legacy *fakeMaster, name string) {
	const ttl = 200 * time.Millisecond
	for try := 0; ctx.Err() == nil; try++ {
		token, took := fmt.Sprint(name, "/", try), false
		legacy.set(func(f *fakeMaster) { took = f.takeDirectly(token, ttl) })
		if took {
			g.enter(token, ttl)
			time.Sleep(10 * time.Millisecond)
			g.leave(token)
			legacy.set(func(f *fakeMaster) { f.removeDirectly(token) })
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// takeDirectly is SET NX PX of the job, as an old client does it.
func (f *fakeMaster) takeDirectly(token string, ttl time.Duration) bool {
	s := f.store(0)
	if s.Look(job.Name).Form != cell.Absent {
		return false
	}
	s.Put(job.Name, foreign(token), ttl)
	return true
}

// removeDirectly is an old client's script: compare and delete.
func (f *fakeMaster) removeDirectly(token string) {
	if s := f.store(0); s.Look(job.Name).Form != cell.Absent && s.Look(job.Name).Value.Text == token {
		s.Delete(job.Name)
	}
}
