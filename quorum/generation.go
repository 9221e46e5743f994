package quorum

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/wake"
)

// generation is a cluster with one set of masters. Another one follows when the masters are changed.
type generation struct {
	of      *Cluster
	masters []*master.Master
	// rounds are those at the masters.
	rounds master.Rounds
	// urls are those of the masters.
	urls []string
	// log goes to debug level while hushed is set: during a planned step, and once other masters have followed.
	log       *slog.Logger
	hushed    *atomic.Bool
	rand      func() float64
	unguarded bool
	// guards are those of the masters.
	guards *guard.Set
	// source makes the attempts and ballots.
	source     *cell.Source
	keyspaces  sync.Map // of *keyspace, by database
	background background
	// missed is what masters may lack.
	missed missed
	// waker notifies those who wait for a key when it may be free.
	waker *wake.Waker
	// listener brings messages between proxies; it is made when first asked for.
	listener func() *messages.Listener
	// stop ends it, once it runs.
	stop context.CancelFunc
}

// newGeneration takes one transport for each of the masters.
func newGeneration(c *Cluster, opts Options, transports []master.Transport, joins *reconfig.Era, follows *guard.Set) *generation {
	g := &generation{
		of: c, urls: opts.Masters, hushed: new(atomic.Bool), rand: opts.Rand, unguarded: opts.Unguarded,
		source: c.source, stop: func() {},
	}
	g.hushed.Store(joins != nil)
	g.log = slog.New(hush{opts.Logger.Handler(), g.hushed})
	var guarded []guard.Master
	turns := master.NewTurns(len(opts.Masters))
	for i, u := range opts.Masters {
		m := master.New(master.NameIn(u), transports[i], turns, g.log, opts.Rand)
		g.masters, guarded = append(g.masters, m), append(guarded, m.Guarded())
	}
	g.guards = guard.NewSet(guard.Options{
		MaxTTL: opts.MaxTTL, FreshStart: opts.FreshStart, Vouched: opts.Vouched, Forced: opts.Forced, Off: opts.Unguarded, SinceBoot: opts.sinceBoot, Settings: opts.Settings,
		Record: opts.Record, Joins: joins, Follows: follows, ID: c.id, Name: opts.Name, Moves: func() int { return int(c.moves.Load()) }, Logger: g.log,
	}, guarded)
	watched := wake.Options{Quorum: Majority(len(g.masters)), Patience: max(opts.MasterTimeout, watchPatience), Logger: g.log, Rand: opts.Rand}
	for i, m := range g.masters {
		m.GuardWith(g.guards.Guard(i))
		m.Voted = c.voted
		watched.Servers = append(watched.Servers, m)
	}
	g.waker = wake.New(watched)
	g.listener = sync.OnceValue(func() *messages.Listener { return messages.New(g.listening()) })
	return g
}

// watchPatience is how long a watch of a master may take to answer, at the least.
const watchPatience = 500 * time.Millisecond

// alarm sets one for a key.
func (g *generation) alarm(key Key) queue.Alarm {
	if key.Tag != "" || g.of.opts.Tagged {
		return g.waker.Within(key.DB, key.cell(), func(ctx context.Context) wake.Content { return g.content(ctx, key) })
	}
	return g.waker.Alarm(key.DB, key.Name)
}

// alarmForChange sets one for whatever change of a key, which rings this bell.
func (g *generation) alarmForChange(key Key, bell chan struct{}) *wake.Alarm {
	return g.waker.ForChange(key.DB, key.cell(), bell)
}

// names are the addresses of the masters.
func (g *generation) names() []string { return namesIn(g.urls) }

// namesIn are the addresses in URLs.
func namesIn(urls []string) []string {
	names := make([]string, len(urls))
	for i, u := range urls {
		names[i] = master.NameIn(u)
	}
	return names
}

// run works until ctx ends; then it sends what is queued, undos included.
func (g *generation) run(ctx context.Context) {
	defer context.AfterFunc(ctx, g.waker.Close)()
	defer context.AfterFunc(ctx, func() { g.listener().Close() })()
	var wg sync.WaitGroup
	for _, m := range g.masters {
		wg.Go(func() { m.Run(ctx) })
	}
	wg.Go(func() { g.compareMissed(ctx) })
	wg.Wait()
	g.waker.Close()
	g.listener().Close()
	g.background.close()
}

// StartsFresh is Cluster.StartsFresh.
func (g *generation) StartsFresh() bool {
	return slices.ContainsFunc(g.masters, func(m *master.Master) bool {
		why := m.Health().Quarantine
		return why != nil && why.Why == guard.AwaitsFreshStart
	})
}

// voting is how many of them vote.
func voting(masters []*master.Master) int {
	n := 0
	for _, m := range masters {
		if m.Votes() {
			n++
		}
	}
	return n
}

// background is work that begins later and ends with the cluster.
type background struct {
	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup
}

// after calls f once d is over, unless the cluster has stopped by then.
func (g *generation) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		b := &g.background
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return
		}
		b.tasks.Add(1)
		b.mu.Unlock()
		defer b.tasks.Done()
		if err := contained.Run(func() error { f(); return nil }); err != nil {
			g.log.Error("a task in the background failed", "cause", err)
		}
	})
}

// close lets nothing begin any more, and waits for what has begun.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.tasks.Wait()
}
