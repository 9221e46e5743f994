package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"redlock-proxy/quorum/pushconn"
)

// Server describes a master to a Watcher.
type Server = pushconn.Server

// Options configures a Watcher.
type Options struct {
	Servers []Server
	// Quorum is the size of a majority of the masters.
	Quorum int
	// ReplyTimeout is the time limit for a reply.
	ReplyTimeout time.Duration
	Logger       *slog.Logger
	// Rand returns numbers in [0, 1).
	Rand func() float64
	// HasExpiries, unless it is nil, reports whether a value, of which it gets the beginning, has
	// members with expiries of their own.
	HasExpiries func(head string) bool
}

// Watcher watches the keys that have an [Alarm] or a [ChangeWatch]. It is safe for concurrent use.
type Watcher struct {
	opts   Options
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	byDB   map[int][]*watch
}

// New returns a Watcher. It connects to the masters only while there are alarms or change watches.
func New(opts Options) *Watcher {
	w := &Watcher{opts: opts, byDB: map[int][]*watch{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// maxKeyLength is the maximum length of a watched key, in bytes.
const maxKeyLength = 64 << 10

// NewAlarm sets an alarm for a key of a database. Its View is empty before the first read.
func (w *Watcher) NewAlarm(db int, key string) *Alarm {
	return w.newAlarm(db, key, evaluate, make(chan struct{}, 1))
}

// NewChangeAlarm sets a change alarm: it sends on wakeup at any change of a key, not only when a
// lock may be free. wakeup must have room for one signal, and may be shared with other alarms.
func (w *Watcher) NewChangeAlarm(db int, key string, wakeup chan struct{}) *Alarm {
	return w.newAlarm(db, key, evaluateChange, wakeup)
}

func (w *Watcher) newAlarm(
	db int, key string, evaluate func([]observation, int, time.Time) View, wakeup chan struct{},
) *Alarm {
	a := &Alarm{watcher: w, key: key, quorum: w.opts.Quorum, evaluate: evaluate, wakeup: wakeup,
		observations: make([]observation, len(w.opts.Servers))}
	if len(key) > maxKeyLength {
		return a
	}
	a.watches = w.watches(db)
	for _, wt := range a.watches {
		wt.add(a.key, a)
	}
	return a
}

// watches returns the watches of a database, or none if the Watcher has closed.
func (w *Watcher) watches(db int) []*watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	watches := w.byDB[db]
	if watches == nil {
		for i, server := range w.opts.Servers {
			watches = append(watches, &watch{watcher: w, master: i, server: server, db: db, listeners: map[string][]listener{}})
		}
		w.byDB[db] = watches
	}
	return watches
}

// start runs a function in a goroutine, unless the Watcher has closed.
func (w *Watcher) start(run func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.tasks.Go(run)
	}
}

// Close ends all watches, and waits until they have ended.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	w.tasks.Wait()
}

// WatchStatus describes the state of the watches of a master.
type WatchStatus struct {
	// Keys is the number of watched keys of clients.
	Keys int
	// Err is the reason why the master is not watched although an alarm or a change watch needs it,
	// or nil.
	Err error
}

// Statuses returns the state of the watches of each master.
func (w *Watcher) Statuses() []WatchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	statuses := make([]WatchStatus, len(w.opts.Servers))
	for _, watches := range w.byDB {
		for i, wt := range watches {
			keys, err := wt.status()
			statuses[i].Keys += keys
			if err != nil {
				statuses[i].Err = err
			}
		}
	}
	return statuses
}
