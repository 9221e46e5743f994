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

	"redlock-proxy/internal/redistest"
)

// TestHoldersDuringFaults lets readers and writers, or clients of a lock with slots, compete at
// three proxies, while masters fail as in TestMutualExclusionDuringFaults. No master loses data.
// There are never more holders than slots, and a writer never has the lock together with another
// client. Some clients use equal tokens, and some stall until their lock has expired.
func TestHoldersDuringFaults(t *testing.T) {
	grants := 0
	for seed := range uint64(redistest.SampleCount(40)) {
		for name, slots := range map[string]int{"readers": Unlimited, "slots": 3} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				runInBubble(t, 5, func(b *fixture) { grants += competeForHolders(b, slots, rand.New(rand.NewPCG(seed, 5))) })
			})
		}
	}
	t.Logf("%d grants", grants)
}

func competeForHolders(b *fixture, slots int, rnd *rand.Rand) (grants int) {
	ctx, stop := context.WithTimeout(b.Context(), 20*time.Second)
	defer stop()
	for _, m := range b.masters {
		m.setLatency(time.Duration(rnd.IntN(4)) * time.Millisecond)
	}
	g := &holderChecker{fixture: b, slots: slots, held: map[int]*held{}, releasing: map[string]int{}, released: map[string]time.Time{}}
	lockers := []*Locker{b.locker, NewLocker(b.newCluster()), NewLocker(b.newCluster())}
	setPeer(lockers[0], lockers[1])
	setPeer(lockers[1], lockers[0])
	var clients sync.WaitGroup
	for n := range 12 {
		seed := rnd.Uint64()
		clients.Go(func() { g.client(ctx, lockers[n%3], n, rand.New(rand.NewPCG(seed, 2))) })
	}
	for ctx.Err() == nil {
		injectFaults(b, rnd)
	}
	clients.Wait()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	snapshots, err := b.locker.Read(b.Context(), []Key{job})
	b.wantErr(err, nil)
	if snapshots[0].Present {
		b.Errorf("%q is left", snapshots[0].Value)
	}
	if g.grants < 50 {
		b.Errorf("only %d grants", g.grants)
	}
	return g.grants
}

// held describes the time for which a client relies on a lock.
type held struct {
	token     string
	exclusive bool
	until     time.Time
}

// holderChecker reports an error if the lock has too many holders at the same time, or a writer and
// another holder.
type holderChecker struct {
	*fixture
	slots int

	mu     sync.Mutex
	held   map[int]*held // by client
	grants int
	// releasing counts the running releases of each token, and released holds the end of its last
	// release. A release may also end another lock with the same token, if that lock was granted
	// before the release and its client learns of the grant later.
	releasing map[string]int
	released  map[string]time.Time
}

func (g *holderChecker) client(ctx context.Context, l *Locker, n int, rnd *rand.Rand) {
	for try := 0; ctx.Err() == nil; try++ {
		req := LockRequest{Keys: []Key{job}, Token: fmt.Sprint("client", n, "/", try), Slots: g.slots}
		isUnique := rnd.IntN(4) > 0
		if !isUnique {
			req.Token = fmt.Sprint("equal", rnd.IntN(2))
		}
		if rnd.IntN(5) == 0 {
			req.Slots = 0
		}
		req.Wait = time.Duration(rnd.IntN(3)) * 100 * time.Millisecond
		req.TTL = time.Duration(20+rnd.IntN(400)) * time.Millisecond
		got, err := l.Lock(ctx, req)
		if err != nil {
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			continue
		}
		g.note(n, req, got, true)
		time.Sleep(time.Duration(rnd.Int64N(int64(got.Validity))))
		if isUnique && rnd.IntN(2) == 0 { // an EXTEND that comes late extends the lock of an equal token
			if more, err := l.Extend(ctx, job, req.Token, req.TTL); err == nil {
				g.note(n, req, more, false)
			}
		}
		if rnd.IntN(8) == 0 { // the client stalls, and releases nothing
			g.forget(n)
			time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
			continue
		}
		g.release(l, n, req.Token)
	}
}

// note records a lease of a client, and checks that no other client holds the lock in conflict with
// it.
func (g *holderChecker) note(n int, req LockRequest, got GrantedLock, granted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if granted {
		g.grants++
	}
	if g.releasing[req.Token] > 0 || granted && !got.LeaseStart.After(g.released[req.Token]) {
		delete(g.held, n)
		return
	}
	g.held[n] = &held{req.Token, req.Slots == 0, time.Now().Add(got.Validity)}
	holders, writers, equal := 0, 0, 0
	for _, h := range g.held {
		if h.until.Before(time.Now()) {
			continue
		}
		holders++
		if h.exclusive {
			writers++
		}
		if h.token == req.Token {
			equal++
		}
	}
	if writers > 0 && holders > 1 || g.slots > 0 && holders > g.slots || granted && equal > 1 {
		g.Errorf("client %d got the lock with %+v: %d holders, %d writers, %d with its token (granted %v)", n, req, holders, writers, equal, granted)
	}
}

func (g *holderChecker) forget(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, n)
}

func (g *holderChecker) release(l *Locker, n int, token string) {
	g.mu.Lock()
	g.releasing[token]++
	for client, h := range g.held {
		if client == n || h.token == token {
			delete(g.held, client)
		}
	}
	g.mu.Unlock()
	err := l.Unlock(context.Background(), job, token)
	if err != nil && !errors.Is(err, ErrNotHeld) && !errors.As(err, new(*NoQuorumError)) {
		g.Errorf("UNLOCK: %v", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.releasing[token]--
	g.released[token] = time.Now()
}
