package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/bag"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// What a Cluster does with keys that share a cell; see package bag. The key of the cell's own name
// is taken, released and extended as any other while it is alone there. Where that finds something
// else in the cell, or a key has a tag, a ballot does it.

var (
	// ErrFenceShared is returned where a fence is asked for with a key that shares its cell with
	// others.
	ErrFenceShared = errors.New("a key that shares its tag with others that exist can have no fence")

	// errApart is returned where several keys are to be taken at once of which some have a tag, and
	// not all the same.
	errApart = errors.New("keys with tags can only be taken together where all have the same")
)

// UpdateAll is Update of several keys of one cell, by one vote: run gets them in their order, and
// decides in the same. If expect is not nil, there is one key.
//
// Errors: those of Update, and bag.ErrTooLarge.
func (c *Cluster) UpdateAll(ctx context.Context, keys []Key, expect *string, run func([]Look) ([]Decision, error)) (Outcome, error) {
	return on(ctx, c, func(g *generation) (Outcome, error) { return g.UpdateAll(ctx, keys, expect, run) })
}

// UpdateAll is Cluster.UpdateAll.
func (g *generation) UpdateAll(ctx context.Context, keys []Key, expect *string, run func([]Look) ([]Decision, error)) (Outcome, error) {
	if err := g.mayTouch(keys...); err != nil {
		return Outcome{}, err
	}
	if cells, _ := cellsOf(keys); len(cells) != 1 {
		return Outcome{}, errApart
	}
	if anyTagged(keys) {
		expect = nil // the cell holds more than that
	}
	var runs []*cellDecision
	change := register.Change{Key: keys[0].cell(), Expect: expect, Run: func(l Look) (Decision, error) {
		d, err := g.decide(ctx, l, keys, string(g.source.Change()), run)
		if err == nil {
			runs = append(runs, d.Note.(*cellDecision))
		}
		return d, err
	}, Owed: func(cell string, mayArrive func() bool) {
		for _, one := range runs {
			for i, d := range one.of {
				if d.Takes { // in a bag its version is that of the run
					g.of.owe(keys[i], one.version, d.TTL, mayArrive)
					g.of.owe(keys[i], cell, d.TTL, mayArrive)
				}
			}
		}
	}}
	out, err := g.keyspace(keys[0].DB).Update(ctx, change)
	if err != nil {
		return out, g.explain(err)
	}
	stands := out.Decision.Note.(*cellDecision)
	for i, d := range stands.of {
		if d.Do == Remove {
			g.of.freed(keys[i])
		}
	}
	if bag.Is(out.Decision.Value) {
		out.Version = stands.version
	}
	out.Decision = stands.of[0]
	return out, nil
}

// cellDecision is the Note of a decision about a cell: those about its keys, and the version of
// those that were put there.
type cellDecision struct {
	of      []Decision
	version string
}

// decide is what a run for some keys makes of their cell, with a new version.
func (g *generation) decide(ctx context.Context, l Look, keys []Key, version string, run func([]Look) ([]Decision, error)) (Decision, error) {
	b, err := bag.Open(keys[0].cell(), l)
	if err != nil {
		return Decision{}, err
	}
	looks := make([]Look, len(keys))
	for i, key := range keys {
		looks[i] = lookAt(b, l, key)
	}
	all, err := run(looks)
	if err != nil {
		return Decision{}, err
	}
	for i, one := range all {
		switch name := keys[i].Name; {
		case one.Do == Remove:
			b.Remove(name)
		case one.Do == Put && one.KeepTTL:
			b.Replace(name, one.Value)
		case one.Do == Put:
			b.Put(name, one.Value, one.TTL)
		}
	}
	d, err := b.Seal(version)
	if err != nil {
		return Decision{}, err
	}
	if lease, any := b.Lease(); any {
		err = g.record(ctx, lease)
	}
	d.Takes = !slices.ContainsFunc(all, func(one Decision) bool { return one.Do != Leave && !one.Takes })
	d.Note = &cellDecision{all, version}
	return d, err
}

// only is a run for one key as one for several.
func only(run func(Look) (Decision, error)) func([]Look) ([]Decision, error) {
	return func(looks []Look) ([]Decision, error) {
		d, err := run(looks[0])
		return []Decision{d}, err
	}
}

// hasBag reports, where the key of a cell's own name was refused, whether other keys may be in that
// cell: then a ballot decides.
func (g *generation) hasBag(err error) bool {
	if !g.of.opts.Tagged || !errors.Is(err, ErrHeld) && !errors.Is(err, ErrNotHeld) {
		return false
	}
	var told *InsteadError
	return !errors.As(err, &told) || bag.Is(told.Instead.Value)
}

// takeShared takes keys of one cell by ballot, all or none. What is owed its removal is nobody's.
func (g *generation) takeShared(ctx context.Context, t Taking) (Grant, error) {
	if !t.Anyhow && t.TTL >= 0 && t.TTL < vote.Shortest {
		return Grant{}, ErrTooShort
	}
	holder := func(looks []Look) int {
		for i, l := range looks {
			if l.Present && !g.of.owes(t.Keys[i], l.Version) {
				return i
			}
		}
		return -1
	}
	switch looks, err := g.Read(ctx, t.Keys); {
	case err != nil:
		return Grant{}, err
	case holder(looks) >= 0:
		return Grant{}, &InsteadError{Err: ErrHeld, Instead: looks[holder(looks)]}
	case t.Fence && t.Keys[0].Tag == "" && !looks[0].Shared:
		return g.Take(ctx, t) // the others have gone since
	case t.Fence:
		return Grant{}, ErrFenceShared
	}
	since, owed := time.Now(), g.owing(t)
	out, err := g.UpdateAll(ctx, t.Keys, nil, func(looks []Look) ([]Decision, error) {
		ds := make([]Decision, len(looks))
		for i := range ds {
			if holder(looks) < 0 {
				ds[i] = Decision{Do: Put, Value: t.Tokens[i], TTL: t.TTL, Takes: !t.Stays}
			}
		}
		return ds, nil
	})
	switch {
	case err != nil:
		return Grant{}, err
	case out.Decision.Do != Put:
		return Grant{}, ErrHeld
	}
	for i, key := range t.Keys {
		g.remember(key, t.Tokens[i], out.Version, t.TTL)
	}
	got, err := g.leaseSince(since, t.TTL, t.Anyhow)
	if got.Version = out.Version; err != nil {
		if owed != nil {
			owed(got.Version, nil)
		}
		return Grant{}, err
	}
	return got, nil
}

// leaseSince is what a ballot that was begun then gave a key.
func (g *generation) leaseSince(since time.Time, ttl time.Duration, anyhow bool) (Grant, error) {
	elapsed := time.Since(since)
	got := Grant{Validity: vote.Validity(ttl, elapsed), Since: since}
	if !anyhow && ttl >= 0 && got.Validity < time.Millisecond {
		late := newNoQuorum(len(g.masters))
		late.Late = elapsed
		return Grant{}, late
	}
	return got, nil
}

// releaseShared removes a key by ballot if it holds the token.
func (g *generation) releaseShared(ctx context.Context, key Key, token string) error {
	var seen Look
	version, left := g.keyspace(key.DB).Forget(key.Name, token)
	_, _, err := g.ifHeld(ctx, key, token, func(l Look) Decision { seen = l; return Decision{Do: Remove} })
	if seen.Present {
		version, left = seen.Version, seen.Left
	}
	if version != "" && errors.As(err, new(*NoQuorumError)) {
		g.of.owe(key, version, left, nil)
	}
	return err
}

// remember remembers the version of a key with a tag that this proxy granted, so that its release
// can be owed whatever the masters answer.
func (g *generation) remember(key Key, token, version string, ttl time.Duration) {
	if key.Tag != "" {
		g.keyspace(key.DB).Remember(key.Name, token, version, ttl)
	}
}

// extendShared raises the remaining time of a key by ballot if it holds the token.
func (g *generation) extendShared(ctx context.Context, key Key, token string, ttl time.Duration) (Grant, error) {
	if ttl >= 0 && ttl < vote.Shortest {
		return Grant{}, ErrTooShort
	}
	longer := func(l Look) bool { return l.Left < 0 || ttl >= 0 && l.Left >= ttl }
	since := time.Now()
	seen, out, err := g.ifHeld(ctx, key, token, func(l Look) Decision {
		if longer(l) { // under a version of its own: the one of before may be owed its removal
			return Decision{Do: Put, Value: token, KeepTTL: true}
		}
		return Decision{Do: Put, Value: token, TTL: ttl}
	})
	if err != nil {
		return Grant{}, err
	}
	lease := ttl
	if longer(seen) {
		lease = seen.Left
	}
	g.remember(key, token, out.Version, lease)
	got, err := g.leaseSince(since, ttl, false)
	got.Longer = longer(seen)
	return got, err
}

// ifHeld makes a change of a key that holds the token, by ballot, and returns what it was made of.
func (g *generation) ifHeld(ctx context.Context, key Key, token string, what func(Look) Decision) (seen Look, out Outcome, err error) {
	out, err = g.UpdateAll(ctx, []Key{key}, nil, only(func(l Look) (d Decision, err error) {
		switch {
		case l.Unknown:
			return Decision{}, ErrNeedsLeft
		case l.Present && l.Value == token:
			d = what(l)
		}
		d.Note = l
		return d, nil
	}))
	if err != nil {
		return Look{}, out, err
	}
	if seen = out.Decision.Note.(Look); !seen.Present || seen.Value != token {
		return Look{}, out, &InsteadError{Err: ErrNotHeld, Instead: seen}
	}
	return seen, out, nil
}

// members replaces names of cells by those of the keys in them.
func (g *generation) members(ctx context.Context, db int, names []string) (all []string, err error) {
	const atOnce = 50 // their values may be large
	for part := range slices.Chunk(names, atOnce) {
		found, err := g.keyspace(db).Read(ctx, part)
		if err != nil {
			return nil, g.explain(err)
		}
		for i, name := range part {
			if l := found[i]; l.Foreign || !bag.Is(l.Value) {
				all = append(all, name)
				continue
			}
			b, err := bag.Open(name, found[i])
			if err != nil { // a later version wrote it
				all = append(all, name)
				continue
			}
			all = append(all, b.Names()...)
		}
	}
	return all, nil
}

// Update is Cluster.Update.
func (g *generation) Update(ctx context.Context, key Key, expect *string, run func(Look) (Decision, error)) (Outcome, error) {
	return g.UpdateAll(ctx, []Key{key}, expect, only(run))
}
