package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

const (
	// maxWriters limits how many keys the store writes at a time. keysPerRead limits how many keys
	// one request reads, because their values may be large.
	maxWriters  = 128
	keysPerRead = 100
	// maxTries limits the attempts at an operation that failed, but may succeed on a retry.
	maxTries = 20
)

// mastersStore implements store for the masters in one era. In any other era it fails.
type mastersStore struct {
	*Mover
	era int
}

// mastersKey returns the key of a lock on the masters in this era.
func (s *mastersStore) mastersKey(n lockName) quorum.Key {
	key := s.opts.KeyOnMasters(n.db, n.key)
	key.Movable, key.Era = false, s.era
	return key
}

func (s *mastersStore) list(ctx context.Context) ([]lockName, error) {
	var databases []int
	err := retry(ctx, func() (err error) {
		databases, err = s.opts.Masters.Databases(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	found := map[lockName]bool{}
	for _, db := range databases {
		err := retry(ctx, func() error {
			return s.opts.Masters.Names(ctx, db, func(names []string) (bool, error) {
				for _, stored := range names {
					if key, isLockKey := s.clientKey(stored); isLockKey {
						found[lockName{db, key}] = true
					}
				}
				return true, nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	// partsByDatabase requires names sorted by database.
	return slices.SortedFunc(maps.Keys(found), func(a, b lockName) int { return cmp.Compare(a.db, b.db) }), nil
}

// errSeveralHolders means that a lock cannot be moved to the upstream, because several clients may
// hold it.
var errSeveralHolders = errors.New("it is held with SHARED or SLOTS, which a single Redis does not support; " +
	"wait until its holders have released it, or FORCEUNLOCK it")

func (s *mastersStore) read(ctx context.Context, names []lockName) ([]lock, error) {
	var locks []lock
	err := s.eachPresent(ctx, names, func(n lockName, l quorum.Snapshot, readAt time.Time) error {
		if l.Foreign {
			return fmt.Errorf("lock key %v: %w", n, quorum.ErrForeign)
		}
		content, err := contents.Decode(l.Value)
		if _, isLock := content.(contents.Holders); isLock {
			err = errSeveralHolders
		}
		if err != nil {
			return fmt.Errorf("lock key %v: %w", n, err)
		}
		found := lock{lockName: n, value: l.Value}
		if l.TimeLeft >= 0 {
			found.expiry = readAt.Add(l.TimeLeft)
		}
		locks = append(locks, found)
		return nil
	})
	return locks, err
}

// visitor gets a key that is present, its snapshot, and the time of the read.
type visitor func(n lockName, l quorum.Snapshot, readAt time.Time) error

// eachPresent calls visit for each present key among names of one database. It names a key that
// stays undetermined.
func (s *mastersStore) eachPresent(ctx context.Context, names []lockName, visit visitor) error {
	for part := range slices.Chunk(names, keysPerRead) {
		err := s.visitPresent(ctx, part, visit)
		if isTemporary(err) { // perhaps because of one key
			err = s.retryEachPresent(ctx, part, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visitPresent reads all names at once. It visits none if a key is undetermined.
func (s *mastersStore) visitPresent(ctx context.Context, names []lockName, visit visitor) error {
	keys := make([]quorum.Key, len(names))
	for i, n := range names {
		keys[i] = s.mastersKey(n)
	}
	snapshots, err := s.opts.Masters.Read(ctx, keys)
	if err != nil {
		return err
	}
	readAt := time.Now()
	for i, l := range snapshots {
		if !l.Present {
			continue
		}
		if err := visit(names[i], l, readAt); err != nil {
			return err
		}
	}
	return nil
}

// retryEachPresent does the same as visitPresent, but reads one name at a time, and retries.
func (s *mastersStore) retryEachPresent(ctx context.Context, names []lockName, visit visitor) error {
	for _, n := range names {
		err := retry(ctx, func() error { return s.visitPresent(ctx, []lockName{n}, visit) })
		switch {
		case isTemporary(err):
			return fmt.Errorf("lock key %v at the masters: %w", n, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// checkWrites implements store. It reads each key twice, one key at a time in each cell. This takes
// about as long as put, which needs two round trips for each key.
func (s *mastersStore) checkWrites(ctx context.Context, locks []lock) error {
	return eachCell(ctx, s, locks, func(l lock) lockName { return l.lockName }, func(ctx context.Context, l lock) error {
		for range 2 {
			err := retry(ctx, func() error {
				_, err := s.opts.Masters.Read(ctx, []quorum.Key{s.mastersKey(l.lockName)})
				return err
			})
			if err != nil {
				return fmt.Errorf("lock key %v at the masters: %w", l.lockName, err)
			}
		}
		return nil
	})
}

func (s *mastersStore) checkRoom(ctx context.Context, bytes int64) error {
	return s.opts.Masters.CheckFreeMemory(ctx, bytes)
}

// put implements store. It writes by ballots. If the mover stalls, the masters reject late writes
// (rule 3 of package location).
func (s *mastersStore) put(ctx context.Context, locks []lock) error {
	return eachCell(ctx, s, locks, func(l lock) lockName { return l.lockName }, func(ctx context.Context, l lock) error {
		return s.update(ctx, l.lockName, func(quorum.Snapshot) (quorum.Decision, error) {
			return quorum.Decision{Action: quorum.Put, Value: l.value, TTL: l.ttl()}, nil
		})
	})
}

// remove implements store. It skips values that a client has written to the masters without a
// proxy.
func (s *mastersStore) remove(ctx context.Context, names []lockName) (int, error) {
	var removedCount atomic.Int64
	for part := range partsByDatabase(names) {
		var presentNames []lockName
		err := s.eachPresent(ctx, part, func(n lockName, l quorum.Snapshot, _ time.Time) error {
			if !l.Foreign {
				presentNames = append(presentNames, n)
			}
			return nil
		})
		if err != nil {
			return int(removedCount.Load()), err
		}
		err = eachCell(ctx, s, presentNames, func(n lockName) lockName { return n }, func(ctx context.Context, n lockName) error {
			err := s.update(ctx, n, func(l quorum.Snapshot) (quorum.Decision, error) {
				if !l.Present || l.Foreign {
					return quorum.Decision{}, nil
				}
				return quorum.Decision{Action: quorum.Remove}, nil
			})
			if err == nil {
				removedCount.Add(1)
			}
			return err
		})
		if err != nil {
			return int(removedCount.Load()), err
		}
	}
	return int(removedCount.Load()), nil
}

// update changes a key as decide says. It may apply the change more than once; the effect is the
// same.
func (s *mastersStore) update(ctx context.Context, n lockName, decide func(quorum.Snapshot) (quorum.Decision, error)) error {
	err := retry(ctx, func() error {
		_, err := s.opts.Masters.Update(ctx, s.mastersKey(n), nil, decide)
		return err
	})
	if err != nil {
		return fmt.Errorf("lock key %v: %w", n, err)
	}
	return nil
}

// retry repeats an operation that too few masters answered, or that other clients obstructed.
func retry(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == maxTries || !isTemporary(err) {
			return err
		}
		if sleepErr := pacing.Sleep(ctx, retryInterval); sleepErr != nil {
			return err
		}
	}
}

// isTemporary reports whether an error may disappear on a retry.
func isTemporary(err error) bool {
	return errors.As(err, new(*quorum.NoQuorumError)) || errors.Is(err, quorum.ErrContended)
}

// eachCell calls do for all elements, several at a time. It processes elements in the same cell one
// after the other, because concurrent changes of a cell obstruct each other. eachCell returns the
// first error.
func eachCell[T any](
	ctx context.Context, s *mastersStore, elems []T, nameOf func(T) lockName, do func(context.Context, T) error,
) error {
	cells := map[quorum.Key][]T{}
	for _, elem := range elems {
		key := s.mastersKey(nameOf(elem))
		cell := quorum.Key{DB: key.DB, Name: cmp.Or(key.Tag, key.Name)}
		cells[cell] = append(cells[cell], elem)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxWriters)
	for _, cell := range cells {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for _, elem := range cell {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, elem); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
