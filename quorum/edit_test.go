package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var spare = Key{Name: "spare"}

func (b *bench) apply(edits ...Edit) Outcome {
	b.Helper()
	got, err := b.cluster.Apply(b.Context(), edits)
	b.wantErr(err, nil)
	synctest.Wait()
	return got
}

func TestApply(t *testing.T) {
	me, you := lasting(token, time.Minute), lasting(rival, time.Hour)
	held := func(value string, left time.Duration) []Holding {
		return []Holding{{Held: true, Value: value, Left: left}}
	}
	for _, c := range []struct {
		name  string
		there Entry
		edit  Edit
		// want is what came of it: with a validity, or what was found instead.
		validity time.Duration
		found    []Holding
		after    string
	}{
		{"take a free key", Entry{}, Edit{Now: me}, Validity(time.Minute, 0), nil, token},
		{"take it without end", Entry{}, Edit{Now: endless(token)}, Endless, nil, token},
		{"take a held key", you, Edit{Now: me}, 0, held(rival, time.Hour), rival},
		{"replace", you, Edit{Was: you, Now: me}, Validity(time.Minute, 0), nil, token},
		{"replace and keep the time", you, Edit{Was: you, Now: me, KeepLeft: true}, Endless, nil, token},
		{"replace another value", you, Edit{Was: me, Now: endless("x")}, 0, held(rival, time.Hour), rival},
		{"replace what is not there", Entry{}, Edit{Was: me, Now: you}, 0, []Holding{{Free: true}}, ""},
		{"remove", you, Edit{Was: you}, Validity(0, 0), nil, ""},
		{"remove another value", you, Edit{Was: me}, 0, held(rival, time.Hour), rival},
		{"remove what is not there", Entry{}, Edit{Was: me}, 0, []Holding{{Free: true}}, ""},
		{"extend", me, Edit{Was: me, Now: lasting(token, time.Hour)}, Validity(time.Hour, 0), nil, token},
		{"extend another's", you, Edit{Was: me, Now: lasting(token, time.Hour)}, 0, held(rival, time.Hour), rival},
		{"only a condition", me, Edit{Was: me, Now: me, KeepLeft: true}, Endless, nil, token},
		{"a time that is never valid", Entry{}, Edit{Now: lasting(token, 2*time.Millisecond)}, Validity(2*time.Millisecond, 0), nil, token},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 5, func(b *bench) {
				if c.there.Present {
					b.apply(Edit{Key: job, Now: c.there})
				}
				c.edit.Key = job
				got := b.apply(c.edit)
				if got.Applied != (c.found == nil) || got.Applied && got.Validity != c.validity || !slices.Equal(got.Found, c.found) {
					b.Errorf("got %+v, want validity %v or found %+v", got, c.validity, c.found)
				}
				b.expect(c.after, c.after, c.after, c.after, c.after)
			})
		})
	}
}

// On each master all edits are made, or none.
func TestApplySeveralKeys(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		both := []Edit{{Key: job, Now: lasting(token, time.Minute)}, {Key: spare, Now: lasting(token, time.Hour)}}
		b.masters[1].set(func(f *fakeMaster) { f.put(spare, endless(rival)) })
		b.masters[2].set(func(f *fakeMaster) { f.put(spare, endless(rival)) })
		got := b.apply(both...)
		want := []Holding{{Free: true}, {Held: true, Value: rival, Left: Endless}}
		if got.Applied || !slices.Equal(got.Found, want) {
			b.Errorf("got %+v, want found %+v", got, want)
		}
		b.expect("", "", "") // undone on the one master that made them
		b.masters[1].set(func(f *fakeMaster) { delete(f.keys, spare) })
		if got := b.apply(both...); !got.Applied || got.Validity != Validity(time.Minute, 0) {
			b.Errorf("two of three: got %+v", got)
		}
		b.expect(token, token, "")
	})
}

// What a lost edit replaced stands there again, for the time that it had.
func TestLostReplacementIsPutBack(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Minute, 0, 1)
		b.plant(rival, time.Minute, 2, 3)
		b.masters[4].hang() // it may hold it
		time.Sleep(10 * time.Second)
		got := b.apply(Edit{Key: job, Was: lasting(token, 0), Now: endless("x")})
		if got.Applied || got.Found[0].Held || !got.Found[0].Unsure {
			b.Errorf("got %+v", got)
		}
		b.expect(token, token, rival, rival, "")
		b.masters[0].set(func(f *fakeMaster) {
			if e := f.look(job); e.Left != 50*time.Second {
				b.Errorf("left %v, want 50s", e.Left)
			}
		})
	})
}

// But not if a majority holds something else by now: then it would be a leftover.
func TestLostReplacementOfWhatIsOverGoes(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Minute, 0, 1)
		b.plant(rival, time.Minute, 2, 3, 4)
		got := b.apply(Edit{Key: job, Was: lasting(token, 0), Now: endless("x")})
		if got.Applied || !got.Found[0].Held || got.Found[0].Value != rival {
			b.Errorf("got %+v", got)
		}
		b.expect("", "", rival, rival, rival)
	})
}

// A master that was sent the edit and hung, and did it afterwards, is put right
// when it is back: also a value without expiry is.
func TestLateEditIsUndone(t *testing.T) {
	for _, now := range []Entry{lasting(token, time.Hour), endless(token)} {
		inBubble(t, 3, func(b *bench) {
			b.masters[1].hang()
			b.masters[2].hang()
			_, err := b.cluster.Apply(b.Context(), []Edit{{Key: job, Now: now}, {Key: spare, Now: now}})
			var none *NoQuorumError
			if !errors.As(err, &none) {
				b.Fatalf("got %v, want no quorum", err)
			}
			time.Sleep(time.Minute)
			b.masters[1].wake()
			b.masters[2].wake()
			time.Sleep(time.Minute)
			b.expect("", "", "")
			b.masters[1].set(func(f *fakeMaster) {
				if len(f.keys) > 0 {
					b.Errorf("left behind: %v", f.keys)
				}
			})
		})
	}
}

// Who waits for a lock is told when an edit frees it.
func TestApplyWakesWaiters(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.mustLock(rival, time.Hour)
		var freed time.Time
		var waited time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := b.locker.Lock(b.Context(), LockRequest{Key: job, Token: token, TTL: time.Minute, Wait: Forever})
			b.wantErr(err, nil)
			waited = time.Since(freed)
		}()
		time.Sleep(longestPoll * 10)
		freed = time.Now()
		b.apply(Edit{Key: job, Was: lasting(rival, 0)})
		<-done
		if waited != 0 {
			b.Errorf("granted %v after it was free", waited)
		}
	})
}

func TestReadAll(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Minute, 0, 1)
		b.masters[4].set(func(f *fakeMaster) { f.put(spare, endless(rival)) })
		for _, m := range b.masters[2:4] {
			m.set(func(f *fakeMaster) { f.refuses = true })
		}
		got, err := b.cluster.ReadAll(b.Context(), []Key{job, spare})
		b.wantErr(err, nil)
		want := []Holding{
			{Split: true, Unsure: true, Value: token, Left: time.Minute}, // the two that are silent may hold it
			{Split: true, Unsure: true, Value: rival, Left: Endless},
		}
		if !slices.Equal(got, want) {
			b.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// TestNothingIsReplacedTwice has many replace unique values by unique values while
// masters fail: each value may be replaced once, and no value is replaced that was
// never there.
func TestNothingIsReplacedTwice(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		const workers, tries = 4, 1000
		var mu sync.Mutex
		replaced := map[string]string{}
		written := map[string]bool{"": true}
		clusters := []*Cluster{b.cluster, b.newCluster()}
		var wg sync.WaitGroup
		for w := range workers {
			rnd := rand.New(rand.NewPCG(7, uint64(w)))
			wg.Go(func() {
				for i := range tries {
					c := clusters[rnd.IntN(len(clusters))]
					time.Sleep(time.Duration(rnd.IntN(6000)) * time.Microsecond)
					held, err := c.Read(b.Context(), job)
					if err != nil || !held.Held && !held.Free {
						continue
					}
					next := fmt.Sprintf("%d-%d", w, i)
					mu.Lock()
					written[next] = true
					mu.Unlock()
					got, err := c.Apply(b.Context(), []Edit{{
						Key: job, Was: Entry{Present: held.Held, Value: held.Value, Left: held.Left}, Now: endless(next),
					}})
					if err != nil || !got.Applied {
						continue
					}
					mu.Lock()
					if other, twice := replaced[held.Value]; twice {
						b.Errorf("%q was replaced by %q and by %q", held.Value, other, next)
					}
					if !written[held.Value] {
						b.Errorf("%q was never there", held.Value)
					}
					replaced[held.Value] = next
					mu.Unlock()
				}
			})
		}
		for _, m := range b.masters {
			m.set(func(f *fakeMaster) { f.unsteady = time.Millisecond })
		}
		rnd := rand.New(rand.NewPCG(8, 8))
		stop := make(chan struct{})
		go func() { wg.Wait(); close(stop) }()
		for disturbing := true; disturbing; {
			m := b.masters[rnd.IntN(len(b.masters))]
			switch rnd.IntN(4) {
			case 0:
				m.hang()
			case 1:
				m.wake()
			case 2:
				m.set(func(f *fakeMaster) { f.loseReplies = 1 })
			case 3:
				m.slow(time.Duration(rnd.IntN(3000)) * time.Microsecond)
			}
			select {
			case <-stop:
				disturbing = false
			case <-time.After(time.Duration(rnd.IntN(400)) * time.Millisecond):
			}
		}
		if len(replaced) < 20 {
			b.Errorf("only %d replacements: too few to show anything", len(replaced))
		}
		for _, m := range b.masters {
			m.wake()
		}
	})
}

// plain commands: a body that one master has is known.
func TestBodies(t *testing.T) {
	masters, c := startMasters(t, 3)
	bodies := NewBodies(c)
	const body, sha = "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	find := func(want bool) {
		t.Helper()
		got, ok, err := bodies.Find(t.Context(), sha)
		if err != nil || ok != want || ok && got != body {
			t.Errorf("got %q, %v, %v", got, ok, err)
		}
	}
	find(false)
	if err := bodies.Save(t.Context(), sha, body); err != nil {
		t.Fatal(err)
	}
	find(true)
	masters[0].Del(bodiesKey.Name)
	masters[1].HSet(bodiesKey.Name, sha, "return 'forged'")
	find(true)
	if err := bodies.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	find(false)
}

// What did not win may have been seen all the same, where masters that did not answer may have made it a majority.
func TestApplyTellsWhatMayHaveBeenSeen(t *testing.T) {
	for _, c := range []struct {
		refuse, hang int
		want         bool
	}{{3, 0, false}, {3, 1, false}, {3, 2, false}, {2, 2, true}, {2, 0, false}} {
		inBubble(t, 5, func(b *bench) {
			for i := range c.refuse {
				b.plant(rival, time.Hour, i)
			}
			for i := range c.hang {
				b.masters[4-i].hang()
			}
			if got := b.apply(Edit{Key: job, Now: lasting(token, time.Minute)}); got.Reach.Seen() != c.want || got.Applied != (c.refuse+c.hang < 3) {
				b.Errorf("%d refuse and %d hang: got %+v", c.refuse, c.hang, got)
			}
		})
	}
}
