package wake

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"redlock-proxy/quorum/feed"
)

// Server is a master as a watch needs it.
type Server = feed.Server

// Options say what a Waker watches.
type Options struct {
	Servers []Server
	// Quorum is how many of them are a majority.
	Quorum int
	// Patience is how long an answer is waited for.
	Patience time.Duration
	Logger   *slog.Logger
	// Rand gives numbers in [0, 1).
	Rand func() float64
}

// Waker watches the keys that are waited for. It is safe for concurrent use.
type Waker struct {
	opts  Options
	ctx   context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	byDB   map[int][]*watch
}

// New makes a Waker, which connects to nothing as long as nobody waits.
func New(opts Options) *Waker {
	w := &Waker{opts: opts, byDB: map[int][]*watch{}}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// longestKey is how long a key may be, in bytes, that is watched.
const longestKey = 64 << 10

// Alarm sets one for a key of a database. It knows nothing before its first look.
func (w *Waker) Alarm(db int, key string) *Alarm {
	return w.set(db, key, judge, make(chan struct{}, 1))
}

// ForChange sets one that rings a bell, which holds one signal and may be that of others, too, at
// whatever change of a key.
func (w *Waker) ForChange(db int, key string, bell chan struct{}) *Alarm {
	return w.set(db, key, judgeChange, bell)
}

func (w *Waker) set(db int, key string, judge func([]sighting, int, time.Time) View, bell chan struct{}) *Alarm {
	a := &Alarm{waker: w, key: key, quorum: w.opts.Quorum, judge: judge, bell: bell, seen: make([]sighting, len(w.opts.Servers))}
	if len(key) > longestKey {
		return a
	}
	a.watches = w.watches(db)
	for _, one := range a.watches {
		one.add(a.key, a)
	}
	return a
}

// watches are those of a database, or none where the Waker has closed.
func (w *Waker) watches(db int) []*watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	all := w.byDB[db]
	if all == nil {
		for i, server := range w.opts.Servers {
			all = append(all, &watch{waker: w, master: i, server: server, db: db, alarms: map[string][]listener{}})
		}
		w.byDB[db] = all
	}
	return all
}

// start runs a watch, unless the Waker has closed.
func (w *Waker) start(run func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.tasks.Go(run)
	}
}

// Close ends all watches, and waits until they have ended.
func (w *Waker) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.end()
	w.tasks.Wait()
}

// Standing is what has become of watching a master.
type Standing struct {
	// Keys is how many are watched there.
	Keys int
	// Err is why it is not watched where somebody waits, or nil.
	Err error
}

// Standings are those of all servers.
func (w *Waker) Standings() []Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Standing, len(w.opts.Servers))
	for _, watches := range w.byDB {
		for i, one := range watches {
			keys, err := one.standing()
			all[i].Keys += keys
			if err != nil {
				all[i].Err = err
			}
		}
	}
	return all
}
