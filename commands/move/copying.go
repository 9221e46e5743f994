package move

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

// lockName holds the database and the name of a lock key, as clients use it.
type lockName struct {
	db  int
	key string
}

// String returns the shortened key and its database, for errors.
func (n lockName) String() string {
	return fmt.Sprintf("'%s' (database %d)", syntax.Excerpt(n.key), n.db)
}

// lock holds a lock key with its value.
type lock struct {
	lockName
	// value is the content as package contents encodes it for the masters.
	value string
	// expiry is the time at which the key expires; zero if the key never expires. A store that reads
	// a remaining time adds it to the time after the reply, so that a slow reply shortens no lease.
	expiry time.Time
}

// ttl returns the remaining time as a TTL in whole milliseconds, at least minCopyTTL. A move must not
// shorten a lease: ttl rounds up, and adds the millisecond by which Redis cuts the times that it
// compares.
func (l lock) ttl() time.Duration {
	if l.expiry.IsZero() {
		return quorum.NoExpiry
	}
	return max((time.Until(l.expiry) + 2*time.Millisecond - 1).Truncate(time.Millisecond), minCopyTTL)
}

const (
	// minCopyTTL is the shortest TTL of a copied key.
	minCopyTTL = 100 * time.Millisecond
	// longestTTL is the remaining time from which on a copy never expires. A Redis takes TTLs that are
	// longer than a Duration.
	longestTTL = 100 * 365 * 24 * time.Hour
	// maxKeysAtOnce limits how many keys one call reads, writes or removes.
	maxKeysAtOnce = 500
)

// store holds locks: the upstream or the masters.
type store interface {
	// list returns the names of all lock keys, each once. Some of these keys may be absent.
	list(ctx context.Context) ([]lockName, error)
	// read returns the keys that are present among names of one database.
	read(ctx context.Context, names []lockName) ([]lock, error)
	// checkWrites checks whether the locks could be written and removed. It changes nothing.
	checkWrites(ctx context.Context, locks []lock) error
	// checkRoom returns an error if there is no room for this many more bytes.
	checkRoom(ctx context.Context, bytes int64) error
	// put stores locks, all in one database, and overwrites keys that exist.
	put(ctx context.Context, locks []lock) error
	// remove removes keys, and returns the number of keys that were present.
	remove(ctx context.Context, names []lockName) (int, error)
}

// stores returns the store that has the locks, and the other store.
func (r *run) stores() (source, target store) {
	upstream := &upstreamStore{Mover: r.Mover, conn: r.conn, room: r.room}
	masters := &mastersStore{Mover: r.Mover, era: r.at.Era}
	if r.at.Source() == location.Masters {
		return masters, upstream
	}
	return upstream, masters
}

// copy makes the lock keys at the target equal to the lock keys at the source (rule 4 of package
// location).
func (r *run) copy(ctx context.Context, source, target store, names []lockName) error {
	copied, countByType := map[lockName]bool{}, map[string]int{}
	for part := range partsByDatabase(names) {
		locks, err := source.read(ctx, part)
		if err != nil {
			return err
		}
		for _, l := range locks {
			copied[l.lockName] = true
			countByType[contents.KindName(l.value)]++
		}
		if err := target.put(ctx, locks); err != nil {
			return err
		}
	}
	r.copiedCounts = formatCounts(countByType)
	targetNames, err := target.list(ctx)
	if err != nil {
		return err
	}
	surplus := slices.DeleteFunc(targetNames, func(n lockName) bool { return copied[n] })
	n, err := target.remove(ctx, surplus)
	if n > 0 {
		r.addLine("removed %s that existed only at the %v", syntax.Count(n, "lock key"), r.at.Target())
	}
	return err
}

// formatCounts returns the number of lock keys of each type.
func formatCounts(countByType map[string]int) string {
	if len(countByType) == 0 {
		return "no lock keys existed"
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(countByType)) {
		counts = append(counts, fmt.Sprintf("%d %s", countByType[kind], kind))
	}
	return strings.Join(counts, ", ")
}

// partsByDatabase splits names that are sorted by database. Each part has names of one database, at
// most maxKeysAtOnce.
func partsByDatabase(names []lockName) iter.Seq[[]lockName] {
	return func(yield func([]lockName) bool) {
		for len(names) > 0 {
			n := 1
			for n < min(len(names), maxKeysAtOnce) && names[n].db == names[0].db {
				n++
			}
			if !yield(names[:n]) {
				return
			}
			names = names[n:]
		}
	}
}
