package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestRemovals: what is owed is due at once, then again after pauses that grow, until a majority has answered and it can come to none any more; a lease
// that is over owes nothing.
func TestRemovals(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := newRemovals()
	open := true
	owed := func(version string, lease time.Duration) *removal {
		return &removal{owedVersion: owedVersion{job, version}, until: now.Add(lease), next: now, mayArrive: func() bool { return open }}
	}
	for range 2 { // the second time it is known
		if !r.add(owed("v", time.Minute)) || r.len() != 1 {
			t.Fatalf("%d are owed, want 1", r.len())
		}
	}
	for n, c := range []struct {
		paid bool
		wait time.Duration
	}{{false, firstPause}, {false, 2 * firstPause}, {true, longestPause}, {false, longestPause}} {
		one, _ := r.take(now)
		if one == nil {
			t.Fatalf("payment %d is not due", n)
		}
		r.settled(one, c.paid, now)
		select {
		case <-r.news:
		default:
			t.Errorf("payment %d: who pays is not told of the next", n)
		}
		if again, wait := r.take(now); again != nil || wait != c.wait {
			t.Errorf("payment %d: due again after %v, want %v", n, wait, c.wait)
		}
		now = now.Add(c.wait)
	}
	open = false
	one, _ := r.take(now)
	r.settled(one, true, now)
	if r.owes(job, "v") || r.len() != 0 || r.bytes != 0 {
		t.Errorf("paid, %d are owed, %d bytes", r.len(), r.bytes)
	}
	r.add(owed("w", time.Minute))
	if one, _ := r.take(now.Add(time.Hour)); one != nil || r.len() != 0 {
		t.Error("a lease that is over is owed")
	}
}

// TestRemovalsAreBounded: beyond its bounds nothing is remembered.
func TestRemovalsAreBounded(t *testing.T) {
	r := newRemovals()
	large := string(make([]byte, mostOwedBytes/2))
	for i, want := range []bool{true, false} {
		if got := r.add(&removal{owedVersion: owedVersion{job, large + string(rune('a'+i)) + large[:i]}, until: time.Now()}); got != want {
			t.Errorf("removal %d: %v", i, got)
		}
		large += large
	}
}

// TestRemovalsAreAskedFor: all are due at once, and unpaid until a majority has answered again.
func TestRemovalsAreAskedFor(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := newRemovals()
	r.add(&removal{owedVersion: owedVersion{job, "v"}, until: now.Add(time.Hour), next: now, mayArrive: func() bool { return true }})
	one, _ := r.take(now)
	r.settled(one, true, now)
	if r.unpaid() != 0 {
		t.Error("it was paid")
	}
	r.ask(now)
	if one, _ = r.take(now); one == nil || r.unpaid() != 1 {
		t.Error("it is not asked for")
	}
}

// TestBagIsNotTakenOver: the answers to a LOCK are lost whose key shares its cell with another client's. The next try leaves that one alone.
func TestBagIsNotTakenOver(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		opts := Options{Tagged: true}
		for i := range b.masters {
			opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
		}
		c, other := b.connect(opts), b.connect(opts)
		own, held := Key{Name: "lock:x"}, Key{Name: "{lock:x}:b", Tag: "lock:x"}
		_, err := other.Take(b.Context(), Taking{Keys: []Key{held}, Tokens: []string{"B"}, TTL: time.Minute})
		b.wantErr(err, nil)
		for _, m := range b.masters {
			m.set(func(m *fakeMaster) {
				m.fails = func(do cell.Op) error {
					_, accepts := do.(cell.Accept)
					m.lost, m.refuses = m.lost || accepts, m.refuses || accepts
					return nil
				}
			})
		}
		if _, err := c.Take(b.Context(), Taking{Keys: []Key{own}, Tokens: []string{"A"}, TTL: time.Minute}); err == nil || c.RemovalsPending() == 0 {
			b.Fatalf("the first try: %v, %d removals pending", err, c.RemovalsPending())
		}
		for _, m := range b.masters {
			m.set(func(m *fakeMaster) { m.fails, m.refuses = nil, false })
		}
		for !c.HasQuorum() {
			time.Sleep(time.Millisecond)
		}
		_, err = c.Take(b.Context(), Taking{Keys: []Key{own}, Tokens: []string{"A2"}, TTL: time.Minute})
		b.wantErr(err, nil)
		time.Sleep(time.Second)
		if looks, err := other.Read(b.Context(), []Key{held, own}); err != nil || looks[0].Value != "B" || looks[1].Value != "A2" {
			b.Errorf("the keys hold %+v, %v", looks, err)
		}
	})
}

// TestExtendOfWhatIsOwed: the answers to a SET NX are lost, so it is owed its removal. Its client finds its token, and is granted an EXTEND, through the
// same proxy or another: what is extended stays.
func TestExtendOfWhatIsOwed(t *testing.T) {
	for _, same := range []bool{true, false} {
		inBubble(t, 3, func(b *bench) {
			other := b.newCluster()
			through := map[bool]*Cluster{true: b.cluster, false: other}[same]
			for i, m := range b.masters {
				if i < 2 {
					m.loses()
				}
				m.set(func(m *fakeMaster) {
					m.fails = func(do cell.Op) error {
						if _, removes := do.(cell.Remove); removes {
							return errors.New("cut off")
						}
						return nil
					}
				})
			}
			_, err := b.cluster.Take(b.Context(), Taking{Keys: []Key{job}, Tokens: []string{"A"}, TTL: time.Minute})
			if err == nil {
				b.Fatal("granted without an answer")
			}
			granted := false
			for range 100 {
				if _, err := through.Extend(b.Context(), job, "A", time.Minute); err == nil {
					granted = true
					break
				}
				time.Sleep(time.Millisecond)
			}
			for _, m := range b.masters {
				m.set(func(m *fakeMaster) { m.fails = nil })
			}
			time.Sleep(3 * time.Second)
			_, err = other.Take(b.Context(), Taking{Keys: []Key{job}, Tokens: []string{"B"}, TTL: time.Minute})
			if held := errors.Is(err, ErrHeld); held != granted {
				b.Errorf("the same proxy %v: EXTEND granted %v, and a rival: %v", same, granted, err)
			}
			b.T.Logf("the same proxy %v: EXTEND granted %v", same, granted)
		})
	}
}
