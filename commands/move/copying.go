package move

import (
	"context"
	"iter"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/place"
)

// name is a lock key as clients have it.
type name struct {
	db  int
	key string
}

// lock is what stands under one.
type lock struct {
	name
	// value is its contents as package contents writes them for the quorum.
	value string
	// end is when it is over; zero: never.
	end time.Time
}

// left is what is left of its time.
func (l lock) left() time.Duration { return time.Until(l.end) }

// isBrief: it is over so soon that nobody need hold it any more when the locks have moved, if that
// is waited for.
func (l lock) isBrief() bool { return !l.end.IsZero() && l.left() < briefly }

const (
	// briefly is how soon a lock is over that is not copied, but waited for.
	briefly = 100 * time.Millisecond
	// atOnce is how many keys are read, or written, at once.
	atOnce = 500
)

// store is where locks are.
type store interface {
	// list is the names of all lock keys there, each once; of some there may be nothing.
	list(ctx context.Context) ([]name, error)
	// read is what stands under names of one database, of those that are there.
	read(ctx context.Context, names []name) ([]lock, error)
	// try finds out whether these could be put there, and removed. It changes nothing.
	try(ctx context.Context, locks []lock) error
	// mayHold says why there is no room for so many more bytes.
	mayHold(ctx context.Context, bytes int64) error
	// put has these keys, of one database, be as they are here.
	put(ctx context.Context, locks []lock) error
	// remove removes names, and returns how many were there.
	remove(ctx context.Context, names []name) (int, error)
}

// stores are where the locks are, and where else they might be.
func (r *run) stores() (here, elsewhere store) {
	upstream, masters := &atUpstream{Mover: r.Mover, conn: r.conn, room: r.room}, &atMasters{Mover: r.Mover, era: r.at.Era}
	if r.at.Source() == place.Masters {
		return masters, upstream
	}
	return upstream, masters
}

// copy has exactly what is under these names at the source be at the target (rule 4).
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
				over = later(over, l.end)
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

// removeOthers removes lock keys that are not among those that were copied.
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
	r.result.Besides, err = target.remove(ctx, others)
	return err
}

// parts are names in parts of one database each.
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
