package tracking

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/quorum"
)

// Mark is set for a key at the masters; *quorum.Mark is one. While it tells news, which waits for
// the mu of a Client, its methods wait: they are called without that mu.
type Mark interface {
	// Settled is closed when it is armed wherever that is going to be soon.
	Settled() <-chan struct{}
	// Watched reports whether any majority that changes the key is heard.
	Watched() bool
	// Stop ends it.
	Stop()
}

// Options are what a Hub works with. All must be set.
type Options struct {
	// Mark sets a mark for a key. tell is called when there is news; it does not wait.
	Mark func(key quorum.Key, notify func(quorum.News)) Mark
	// Read returns what a majority of the masters holds.
	Read func(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error)
	// Logger logs mistakes in the program.
	Logger *slog.Logger
}

// Hub is what the clients of a process have in common. It is safe for concurrent use.
type Hub struct {
	opts Options

	mu sync.Mutex
	// clients are those that track.
	clients map[*Client]bool
}

// NewHub makes a Hub.
func NewHub(opts Options) *Hub {
	return &Hub{opts: opts, clients: map[*Client]bool{}}
}

// LoseAll has all clients that track be told that everything may have changed, and forgets what
// they remember: the keys are kept elsewhere now, and what was read there before is watched no
// more. It does not wait for clients.
func (h *Hub) LoseAll() {
	h.mu.Lock()
	clients := slices.Collect(maps.Keys(h.clients))
	h.mu.Unlock()
	for _, c := range clients {
		c.loseAll()
	}
}

func (h *Hub) enlist(c *Client, tracks bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.clients, c); tracks {
		h.clients[c] = true
	}
}

// id is a key of a client.
type id struct {
	db  int
	key string
}

// entry is a key that a client remembers. The fields after place belong to the client's mu.
type entry struct {
	id
	client *Client
	place  quorum.Key
	was    state // what was reported to the client

	mark Mark // nil before the first check
	// round counts the marks: what an older one reports is over.
	round int
	// due is when it is to be checked; zero: not before there is news.
	due       time.Time
	ends      *time.Timer // nil: its end is not awaited
	checked   time.Time
	hurried   int // checks in short time
	postponed int // checks whose result was not used
	gone      bool
}

// state is what a key held: its value, or the SHA-256 of one that is longer than that.
type state struct {
	present bool
	value   string
	// end is when that ends; timed is false where that is not known, and endless where it never
	// does.
	timed, endless bool
	end            time.Time
	// unknown is set where the client could not be notified: anything is another.
	unknown bool
}

func stateOf(e keyspace.Entry, now time.Time) state {
	if len(e.Value) > sha256.Size { // it is only compared
		sum := sha256.Sum256([]byte(e.Value))
		e.Value = string(sum[:])
	}
	switch {
	case !e.Present:
		return state{}
	case e.Left == keyspace.Unknown:
		return state{present: true, value: e.Value}
	case e.Left < 0:
		return state{present: true, value: e.Value, timed: true, endless: true}
	}
	return state{present: true, value: e.Value, timed: true, end: now.Add(e.Left)}
}

func stateIn(l quorum.Look, now time.Time) state {
	e := keyspace.Entry{Present: l.Present, Value: l.Value, Left: l.Left}
	switch {
	case l.Unknown:
		e.Left = keyspace.Unknown
	case l.Left < 0:
		e.Left = keyspace.Endless
	}
	return stateOf(e, now)
}

// slack is by how much the end of a key may differ and still be the same: it is known through
// several clocks.
const slack = 250 * time.Millisecond

func (s state) holds(other state) bool { return s.present == other.present && s.value == other.value }

// is reports whether two states are the same for who was told of one.
func (s state) is(other state) bool {
	switch {
	case s.unknown || !s.holds(other):
		return false
	case !s.timed || !other.timed:
		return true
	}
	return s.endless == other.endless && s.end.Sub(other.end).Abs() <= slack
}
