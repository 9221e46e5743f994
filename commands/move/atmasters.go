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

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/vote"
)

const (
	// writers limits how many keys are written on the masters at a time. readAtOnce limits how many
	// keys one request reads, because their values may be large.
	writers    = 128
	readAtOnce = 100
	// maxTries limits the attempts at an operation that too few masters answered, or that other
	// clients obstructed.
	maxTries = 20
)

// atMasters is the store of the locks on the masters in one era. In any other era it fails.
type atMasters struct {
	*Mover
	era int
}

// place returns the key of a lock on the masters in this era.
func (s *atMasters) place(n name) quorum.Key {
	key := s.opts.Place(n.db, n.key)
	key.Movable, key.Era = false, s.era
	return key
}

func (s *atMasters) list(ctx context.Context) ([]name, error) {
	var databases []int
	err := retry(ctx, func() (err error) {
		databases, err = s.opts.Masters.Databases(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	found := map[name]bool{}
	for _, db := range databases {
		err := retry(ctx, func() error {
			return s.opts.Masters.Names(ctx, db, func(names []string) (bool, error) {
				for _, one := range names {
					if key, ours := s.clientKey(one); ours {
						found[name{db, key}] = true
					}
				}
				return true, nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	// parts requires names sorted by database.
	return slices.SortedFunc(maps.Keys(found), func(a, b name) int { return cmp.Compare(a.db, b.db) }), nil
}

func (s *atMasters) read(ctx context.Context, names []name) ([]lock, error) {
	var all []lock
	err := s.eachPresent(ctx, names, func(n name, l quorum.Look, at time.Time) error {
		if l.Foreign {
			return fmt.Errorf("lock key '%s' (database %d): %w", syntax.Shown(n.key), n.db, quorum.ErrForeign)
		}
		if _, err := contents.Decode(l.Value); err != nil {
			return fmt.Errorf("lock key '%s' (database %d): %w", syntax.Shown(n.key), n.db, err)
		}
		found := lock{name: n, value: l.Value}
		if l.Left >= 0 {
			found.end = at.Add(l.Left)
		}
		all = append(all, found)
		return nil
	})
	return all, err
}

// eachPresent calls do with the value of each present key among names of one database, and the time
// at which it was read.
func (s *atMasters) eachPresent(ctx context.Context, names []name, do func(name, quorum.Look, time.Time) error) error {
	for part := range slices.Chunk(names, readAtOnce) {
		places := make([]quorum.Key, len(part))
		for i, n := range part {
			places[i] = s.place(n)
		}
		var looks []quorum.Look
		err := retry(ctx, func() (err error) {
			looks, err = s.opts.Masters.Read(ctx, places)
			return err
		})
		if err != nil {
			return err
		}
		at := time.Now()
		for i, l := range looks {
			if !l.Present {
				continue
			}
			if err := do(part[i], l, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// try reads each key twice, one key at a time in each cell. put changes a key with the same two
// round trips.
func (s *atMasters) try(ctx context.Context, locks []lock) error {
	return eachCell(ctx, s, locks, func(l lock) name { return l.name }, func(ctx context.Context, l lock) error {
		for range 2 {
			if _, err := s.opts.Masters.Read(ctx, []quorum.Key{s.place(l.name)}); err != nil {
				return fmt.Errorf("lock key '%s' (database %d) at the masters: %w", syntax.Shown(l.key), l.db, err)
			}
		}
		return nil
	})
}

func (s *atMasters) mayHold(ctx context.Context, bytes int64) error {
	return s.opts.Masters.CheckRoom(ctx, bytes)
}

// put writes by ballots. If the mover stalls, the masters reject late writes (rule 3).
func (s *atMasters) put(ctx context.Context, locks []lock) error {
	return eachCell(ctx, s, locks, func(l lock) name { return l.name }, func(ctx context.Context, l lock) error {
		return s.update(ctx, l.name, func(quorum.Look) (quorum.Decision, error) {
			return quorum.Decision{Do: quorum.Put, Value: l.value, TTL: l.ttl()}, nil
		})
	})
}

// ttl returns the remaining time of a lock as a TTL for the masters.
func (l lock) ttl() time.Duration {
	if l.end.IsZero() {
		return quorum.Endless
	}
	return max(l.left().Round(time.Millisecond), vote.MinTTL)
}

// remove skips values that a client has written to the masters without a proxy.
func (s *atMasters) remove(ctx context.Context, names []name) (int, error) {
	var removed atomic.Int64
	for part := range parts(names) {
		var held []name
		err := s.eachPresent(ctx, part, func(n name, l quorum.Look, _ time.Time) error {
			if !l.Foreign {
				held = append(held, n)
			}
			return nil
		})
		if err != nil {
			return int(removed.Load()), err
		}
		err = eachCell(ctx, s, held, func(n name) name { return n }, func(ctx context.Context, n name) error {
			err := s.update(ctx, n, func(l quorum.Look) (quorum.Decision, error) {
				if !l.Present || l.Foreign {
					return quorum.Decision{}, nil
				}
				return quorum.Decision{Do: quorum.Remove}, nil
			})
			if err == nil {
				removed.Add(1)
			}
			return err
		})
		if err != nil {
			return int(removed.Load()), err
		}
	}
	return int(removed.Load()), nil
}

// update changes a key. It may call run more than once, with the same effect.
func (s *atMasters) update(ctx context.Context, n name, run func(quorum.Look) (quorum.Decision, error)) error {
	err := retry(ctx, func() error {
		_, err := s.opts.Masters.Update(ctx, s.place(n), nil, run)
		return err
	})
	if err != nil {
		return fmt.Errorf("lock key '%s' (database %d): %w", syntax.Shown(n.key), n.db, err)
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
		if ended := pacing.Sleep(ctx, retryPause); ended != nil {
			return err
		}
	}
}

// isTemporary reports whether an error may disappear on a retry.
func isTemporary(err error) bool {
	return errors.As(err, new(*quorum.NoQuorumError)) || errors.Is(err, quorum.ErrContended)
}

// eachCell calls do for all elements, several at a time. Elements in the same cell follow one
// another, because concurrent changes of a cell obstruct each other. eachCell returns the first
// error.
func eachCell[T any](
	ctx context.Context, s *atMasters, all []T, nameOf func(T) name, do func(context.Context, T) error,
) error {
	cells := map[quorum.Key][]T{}
	for _, one := range all {
		key := s.place(nameOf(one))
		cell := quorum.Key{DB: key.DB, Name: cmp.Or(key.Tag, key.Name)}
		cells[cell] = append(cells[cell], one)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	turns := make(chan struct{}, writers)
	for _, cell := range cells {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			for _, one := range cell {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, one); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
