package move

import (
	"context"
	"iter"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/location"
)

// name is a lock key as clients name it.
type name struct {
	db  int
	key string
}

// lock is a lock key with its value.
type lock struct {
	name
	// value is the content as package contents encodes it for the masters.
	value string
	// end is the time at which the key expires; zero if it does not.
	end time.Time
}

// left returns the remaining time until the key expires.
func (l lock) left() time.Duration { return time.Until(l.end) }

// isBrief reports whether the key expires so soon that the move waits instead of copying it.
func (l lock) isBrief() bool { return !l.end.IsZero() && l.left() < briefTime }

const (
	// briefTime is the remaining time below which a key is not copied.
	briefTime = 100 * time.Millisecond
	// atOnce limits how many keys are read, or written, at once.
	atOnce = 500
)

// store holds locks: the upstream or the masters.
type store interface {
	// list returns the names of all lock keys, each once. Some may be absent.
	list(ctx context.Context) ([]name, error)
	// read returns the keys that are present among names of one database.
	read(ctx context.Context, names []name) ([]lock, error)
	// try checks whether the locks could be written and removed. It changes nothing.
	try(ctx context.Context, locks []lock) error
	// mayHold returns an error if there is no room for this many more bytes.
	mayHold(ctx context.Context, bytes int64) error
	// put stores locks, all in one database, and overwrites keys that exist.
	put(ctx context.Context, locks []lock) error
	// remove removes keys, and returns how many were present.
	remove(ctx context.Context, names []name) (int, error)
}

// stores returns the store that has the locks, and the other one.
func (r *run) stores() (here, elsewhere store) {
	upstream := &atUpstream{Mover: r.Mover, conn: r.conn, room: r.room}
	masters := &atMasters{Mover: r.Mover, era: r.at.Era}
	if r.at.Source() == location.Masters {
		return masters, upstream
	}
	return upstream, masters
}

// copy makes the lock keys at the target exactly those at the source (rule 4).
func (r *run) copy(ctx context.Context, source, target store, names []name) error {
	copied, kinds, over := map[name]bool{}, map[string]int{}, time.Now()
	for part := range parts(names) {
		locks, err := source.read(ctx, part)
		if err != nil {
			return err
		}
		var lasting []lock
		for _, l := range locks {
			if l.isBrief() {
				over = latest(over, l.end)
				continue
			}
			lasting = append(lasting, l)
			copied[l.name] = true
			kinds[contents.KindName(l.value)]++
		}
		if err := target.put(ctx, lasting); err != nil {
			return err
		}
	}
	if err := r.removeOthers(ctx, target, copied); err != nil {
		return err
	}
	r.result.Copied = kinds
	return pacing.Sleep(ctx, time.Until(over))
}

// removeOthers removes the lock keys at the target that were not copied.
func (r *run) removeOthers(ctx context.Context, target store, copied map[name]bool) error {
	names, err := target.list(ctx)
	if err != nil {
		return err
	}
	var others []name
	for _, n := range names {
		if !copied[n] {
			others = append(others, n)
		}
	}
	r.result.RemovedAtTarget, err = target.remove(ctx, others)
	return err
}

// parts splits names into parts, each of one database.
func parts(names []name) iter.Seq[[]name] {
	return func(yield func([]name) bool) {
		for len(names) > 0 {
			n := 1
			for n < min(len(names), atOnce) && names[n].db == names[0].db {
				n++
			}
			if !yield(names[:n]) {
				return
			}
			names = names[n:]
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
