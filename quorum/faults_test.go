package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestMutualExclusionDuringFaults lets clients of two proxies compete for one lock, while up to two
// of five masters at a time hang, lose replies and refuse connections. No master loses data. There
// is never a second holder, and the masters hold no key at the end.
func TestMutualExclusionDuringFaults(t *testing.T) {
	for seed := range uint64(redistest.SampleCount(20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runInBubble(t, 5, func(b *fixture) { competeDuringFaults(b, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func competeDuringFaults(b *fixture, rnd *rand.Rand) {
	ctx, stop := context.WithTimeout(b.Context(), 20*time.Second)
	defer stop()
	for _, m := range b.masters {
		m.setLatency(time.Duration(rnd.IntN(4)) * time.Millisecond)
	}
	g := &exclusionChecker{fixture: b}
	lockers := []*Locker{b.locker, NewLocker(b.newCluster())}
	setPeer(lockers[0], lockers[1])
	setPeer(lockers[1], lockers[0])
	var clients sync.WaitGroup
	for n := range 8 {
		seed := rnd.Uint64()
		clients.Go(func() { g.runClient(ctx, lockers[n%2], fmt.Sprint("client", n), rand.New(rand.NewPCG(seed, 2))) })
	}
	for ctx.Err() == nil {
		injectFaults(b, rnd)
	}
	clients.Wait()
	time.Sleep(10 * time.Second)
	b.wantValues("", "", "", "", "")
	if g.grants < 50 {
		b.Errorf("only %d grants", g.grants)
	}
}

// injectFaults makes up to two masters fail for a while.
func injectFaults(b *fixture, rnd *rand.Rand) {
	for _, i := range rnd.Perm(len(b.masters))[:rnd.IntN(3)] {
		m := b.masters[i]
		switch rnd.IntN(3) {
		case 0:
			m.hang()
			defer m.resume()
		case 1:
			m.refuseConnections()
			defer m.acceptConnections()
		case 2:
			m.change(func(f *fakeMaster) { f.loseReplies = 3 })
		}
	}
	time.Sleep(time.Duration(rnd.IntN(600)) * time.Millisecond)
}

// exclusionChecker reports an error if two clients hold the lock at the same time.
type exclusionChecker struct {
	*fixture
	mu         sync.Mutex
	holder     string
	validUntil time.Time
	grants     int
}

func (g *exclusionChecker) runClient(ctx context.Context, l *Locker, name string, rnd *rand.Rand) {
	for try := 0; ctx.Err() == nil; try++ {
		token := fmt.Sprint(name, "/", try)
		wait := time.Duration(rnd.IntN(3)) * 100 * time.Millisecond
		ttl := time.Duration(20+rnd.IntN(400)) * time.Millisecond
		got, err := l.Lock(ctx, LockRequest{Keys: []Key{job}, Token: token, TTL: ttl, Wait: wait})
		if err != nil {
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			continue
		}
		g.noteGrant(token, got.Validity)
		time.Sleep(time.Duration(rnd.Int64N(int64(got.Validity))))
		if rnd.IntN(2) == 0 {
			if more, err := l.Extend(ctx, job, token, ttl); err == nil {
				g.noteExtension(token, more.Validity)
			}
		}
		g.noteRelease(token)
		if err := l.Unlock(context.Background(), job, token); err != nil && !errors.Is(err, ErrNotHeld) {
			var noQuorum *NoQuorumError
			if !errors.As(err, &noQuorum) {
				g.Errorf("UNLOCK: %v", err)
			}
		}
	}
}

func (g *exclusionChecker) noteGrant(token string, validity time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder != "" && time.Now().Before(g.validUntil) {
		g.Errorf("%s was granted while %s holds for another %v", token, g.holder, time.Until(g.validUntil))
	}
	g.holder, g.validUntil = token, time.Now().Add(validity)
	g.grants++
}

func (g *exclusionChecker) noteExtension(token string, validity time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder != token && g.holder != "" && time.Now().Before(g.validUntil) {
		g.Errorf("%s was extended while %s holds", token, g.holder)
	}
	g.holder, g.validUntil = token, time.Now().Add(validity)
}

func (g *exclusionChecker) noteRelease(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder == token {
		g.holder = ""
	}
}

// TestSingleUpdates lets clients of two proxies add words to a value, while masters fail as in
// TestMutualExclusionDuringFaults. The value has each confirmed word once, and any other word at
// most once.
func TestSingleUpdates(t *testing.T) {
	for seed := range uint64(redistest.SampleCount(20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runInBubble(t, 5, func(b *fixture) { appendWordsDuringFaults(b, rand.New(rand.NewPCG(seed, 3))) })
		})
	}
}

func appendWordsDuringFaults(b *fixture, rnd *rand.Rand) {
	ctx, stop := context.WithTimeout(b.Context(), 5*time.Second)
	defer stop()
	for _, m := range b.masters {
		m.setLatency(time.Duration(rnd.IntN(4)) * time.Millisecond)
		m.change(func(f *fakeMaster) { f.jitter = 2 * time.Millisecond })
	}
	proxies := []*Cluster{b.cluster, b.newCluster()}
	var mu sync.Mutex
	confirmed := map[string]bool{}
	var clients sync.WaitGroup
	for n := range 6 {
		clients.Go(func() {
			for try := 0; ctx.Err() == nil; try++ {
				word := fmt.Sprintf("%d.%d ", n, try)
				_, err := proxies[n%2].Update(context.Background(), job, nil, func(l Snapshot) (Decision, error) {
					return Decision{Action: Put, Value: l.Value + word, TTL: time.Hour}, nil
				})
				if unknown := new(NoQuorumError); err != nil && err != ErrContended && !errors.As(err, &unknown) {
					b.Error(err)
				}
				if err == ErrContended {
					continue // the word was not added
				}
				mu.Lock()
				confirmed[word] = err == nil
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for ctx.Err() == nil {
		injectFaults(b, rnd)
	}
	clients.Wait()
	time.Sleep(10 * time.Second)
	snapshots, err := b.cluster.Read(b.Context(), []Key{job})
	b.wantErr(err, nil)
	occurrences := map[string]int{}
	for word := range strings.SplitAfterSeq(snapshots[0].Value, " ") {
		occurrences[word]++
	}
	delete(occurrences, "")
	made := 0
	for word, isConfirmed := range confirmed {
		if n := occurrences[word]; n > 1 || isConfirmed && n == 0 {
			b.Errorf("%s: answered %v, and %d times there", word, isConfirmed, n)
		}
		made += occurrences[word]
		delete(occurrences, word)
	}
	if len(occurrences) > 0 || made < 50 {
		b.Errorf("%d words; of some it was said that they are not there: %v", made, occurrences)
	}
}
