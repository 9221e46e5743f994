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

// Mark reports changes of a key on the masters; *quorum.ChangeWatch implements it. While a mark
// reports a change, it waits for the mu of a Client, and the methods of the mark block. So the
// Client calls these methods without holding its mu.
type Mark interface {
	// Settled returns a channel that is closed when a majority of the masters has armed the mark,
	// or no further master can arm it.
	Settled() <-chan struct{}
	// IsWatched reports whether the mark notices every majority that changes the key.
	IsWatched() bool
	// Stop removes the mark.
	Stop()
}

// Options holds the dependencies of a Hub. All fields are required.
type Options struct {
	// Mark sets a mark on a key. The mark calls notify with each report. notify does not block.
	Mark func(key quorum.Key, notify func(quorum.Report)) Mark
	// Read returns the values that a majority of the masters holds.
	Read func(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error)
	// Logger logs panics.
	Logger *slog.Logger
}

// Hub holds the tracking clients of a process. It is safe for concurrent use.
type Hub struct {
	opts Options

	mu sync.Mutex
	// clients holds the clients that use CLIENT TRACKING without REDIRECT.
	clients map[*Client]bool
}

// NewHub returns a Hub.
func NewHub(opts Options) *Hub {
	return &Hub{opts: opts, clients: map[*Client]bool{}}
}

// InvalidateAll notifies all tracking clients that everything may have changed, and forgets their
// keys. The proxy calls it after the keys have moved, because the marks on the old servers are then
// useless. InvalidateAll does not wait for the clients.
func (h *Hub) InvalidateAll() {
	h.mu.Lock()
	clients := slices.Collect(maps.Keys(h.clients))
	h.mu.Unlock()
	for _, c := range clients {
		c.invalidateAll()
	}
}

func (h *Hub) setTracking(c *Client, isTracking bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.clients, c); isTracking {
		h.clients[c] = true
	}
}

// dbKey names a key of a database.
type dbKey struct {
	db  int
	key string
}

// entry holds a key that a client remembers. The client's mu guards the fields after keyOnMasters.
type entry struct {
	dbKey
	client       *Client
	keyOnMasters quorum.Key
	seenState    state // the state that the client saw

	mark Mark // nil before the first check
	// markID numbers the marks. The Client ignores reports of an older mark.
	markID int
	// dueTime is the time of the next check. It is zero if no check is scheduled.
	dueTime     time.Time
	expiryTimer *time.Timer // nil: no check at the expiry is scheduled
	// lastReport is the time of the last report that the key has changed on only some masters.
	// recentReports counts such reports in short succession.
	lastReport    time.Time
	recentReports int
	postponements int // checks postponed in favor of the client's own commands
	forgotten     bool
}

// state holds the state of a key: its value, or the SHA-256 of a longer value.
type state struct {
	present bool
	value   string
	// expiry is the time at which the key expires. expiryKnown is false if that time is unknown.
	// neverExpires is true if the key never expires.
	expiryKnown, neverExpires bool
	expiry                    time.Time
	// unknown is true if the client's command failed. Every state differs from an unknown state.
	unknown bool
}

func stateOf(e keyspace.Entry, now time.Time) state {
	if len(e.Value) > sha256.Size { // states are only compared, so a hash is enough
		sum := sha256.Sum256([]byte(e.Value))
		e.Value = string(sum[:])
	}
	switch {
	case !e.Present:
		return state{}
	case e.RemainingTTL == keyspace.UnknownExpiry:
		return state{present: true, value: e.Value}
	case e.RemainingTTL < 0:
		return state{present: true, value: e.Value, expiryKnown: true, neverExpires: true}
	}
	return state{present: true, value: e.Value, expiryKnown: true, expiry: now.Add(e.RemainingTTL)}
}

func stateOfSnapshot(l quorum.Snapshot, now time.Time) state {
	e := keyspace.Entry{Present: l.Present, Value: l.Value, RemainingTTL: l.TimeLeft}
	switch {
	case l.TimeLeftUnknown:
		e.RemainingTTL = keyspace.UnknownExpiry
	case l.TimeLeft < 0:
		e.RemainingTTL = keyspace.NoExpiry
	}
	return stateOf(e, now)
}

// expiryTolerance is the largest difference of expiries that count as the same, because different
// clocks measure them.
const expiryTolerance = 250 * time.Millisecond

func (s state) equalsInValue(other state) bool {
	return s.present == other.present && s.value == other.value
}

// equals reports whether two states are the same for the client.
func (s state) equals(other state) bool {
	switch {
	case s.unknown || !s.equalsInValue(other):
		return false
	case !s.expiryKnown || !other.expiryKnown:
		return true
	}
	return s.neverExpires == other.neverExpires && s.expiry.Sub(other.expiry).Abs() <= expiryTolerance
}
