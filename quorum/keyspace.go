package quorum

import (
	"context"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/bag"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

// keyspace is one database of the masters: a register and how it reaches them.
type keyspace struct {
	*register.Register
	cluster *generation
	db      int
}

// keyspace is that of a database; each is made once.
func (g *generation) keyspace(db int) *keyspace {
	if k, ok := g.keyspaces.Load(db); ok {
		return k.(*keyspace)
	}
	k := &keyspace{cluster: g, db: db}
	k.Register = register.New(register.Options{
		N: len(g.masters), Masters: k, Source: g.source, Patience: patience, Tries: LeastTries, Keep: true, Yield: yieldTime, Unlimited: g.unguarded, Shared: bag.Is,
		FenceAhead: func(m int, key string) { g.guards.FenceAhead(g.masters[m].Name(), key) },
	})
	known, _ := g.keyspaces.LoadOrStore(db, k)
	return known.(*keyspace)
}

// patience is how long a command is tried again because others change the same key.
const patience = 5 * time.Second

// LeastTries is how often it is tried at the least: about as often as in patience where a try takes
// 200 ms.
const LeastTries = 25

// yieldTime is some round trips.
const yieldTime = 3 * time.Millisecond

// Ask is of register.Masters. Those who wait for the key are notified of what frees it before it is
// sent, so that the take of the next one leaves with it, or what leaves the lock to another proxy.
// With a take others are asked if they wait.
func (k *keyspace) Ask(ctx context.Context, ops []cell.Op, decided func([]register.Reply) bool) (register.Asked, error) {
	var r *master.Round
	g := k.cluster
	if name, frees := freed(ops); frees {
		r = g.rounds.Send(g.masters, k.db, ops, decided, func() bool { return g.of.freed(Key{DB: k.db, Name: name}) })
	} else if name, takes := taken(ops); takes {
		g.of.taking(Key{DB: k.db, Name: name}, func(and func()) { r = g.rounds.Send(g.masters, k.db, ops, decided, lastly(and)) })
	} else {
		r = g.rounds.Send(g.masters, k.db, ops, decided, nil)
	}
	return r, r.Wait(ctx)
}

// freed is the key of which the operations release a lock, or remove it by ballot: what waits for
// it can be notified as soon as they are queued, because what follows of the same key comes after
// them.
func freed(ops []cell.Op) (name string, frees bool) {
	for _, o := range ops {
		switch o := o.(type) {
		case nil:
		case cell.Remove:
			return o.Name, o.How == cell.Release
		case cell.Accept:
			return o.Name, !o.Value.Present
		default:
			return "", false
		}
	}
	return "", false
}

// lastly is for a round with which what and sends is to leave, and nothing more.
func lastly(and func()) (queued func() bool) {
	if and == nil {
		return nil
	}
	return func() bool { and(); return false }
}

// taken is the key that the operations take, of one key.
func taken(ops []cell.Op) (name string, takes bool) {
	for _, o := range ops {
		if take, ok := o.(cell.Take); ok && len(take.Names) == 1 {
			return take.Names[0], true
		}
		if o != nil {
			break
		}
	}
	return "", false
}

// Tell is of register.Masters.
func (k *keyspace) Tell(i int, do cell.Op, owed bool) {
	k.cluster.masters[i].Tell(k.db, do, owed)
}

// After is of register.Masters.
func (k *keyspace) After(d time.Duration, f func()) { k.cluster.after(d, f) }

// Well is of register.Masters.
func (k *keyspace) Well() bool { return k.cluster.isWell() }

// Missed is of register.Masters.
func (k *keyspace) Missed() { k.cluster.missed.in(k.db) }

// Voters is of register.Masters.
func (k *keyspace) Voters() int { return voting(k.cluster.masters) }

// Clock is of register.Masters.
func (k *keyspace) Clock() time.Duration { return k.cluster.guards.Clock(time.Now()) }

// Pause is of register.Masters: up to 2 ms after the first failure, 16 ms after many.
func (k *keyspace) Pause(ctx context.Context, failures int) error {
	longest := time.Millisecond << min(failures, 4)
	return pacing.Sleep(ctx, time.Duration(k.cluster.rand()*float64(longest)))
}

// Now is of register.Masters.
func (k *keyspace) Now() time.Time { return time.Now() }

// longestOf is the key in whose order the record of the longest TTL is raised.
var longestOf = Key{Name: script.LongestKey}

// record makes sure that the longest TTL in use, on a majority of the masters, is not
// less than ttl; a lock without expiry counts as the limit.
func (g *generation) record(ctx context.Context, ttl time.Duration) error {
	if ttl < 0 {
		ttl = g.guards.MaxTTL()
	}
	if g.unguarded || g.guards.IsRecorded(ttl) {
		return nil
	}
	if voting(g.masters) < Majority(len(g.masters)) {
		// Nothing would come of it, but the masters in quarantine would wait for that TTL.
		if _, err := g.keyspace(0).Read(ctx, []string{longestOf.Name}); err != nil {
			return g.explain(err)
		}
	}
	words, recorded := g.guards.Recording(ttl)
	ops := make([]cell.Op, len(g.masters))
	for i := range ops {
		ops[i] = raise{words}
	}
	r, err := g.keyspace(longestOf.DB).Ask(ctx, ops, register.Answered)
	switch {
	case err != nil:
		return err
	case !register.Answered(r.Replies()):
		return g.explain(&register.NoQuorum{Replies: r.Replies()})
	}
	g.guards.Recorded(recorded)
	return nil
}

// raise raises the record of the longest TTL. It is never run on a cell.Store.
type raise struct{ words []any }

func (r raise) Keys() []string                { return []string{longestOf.Name} }
func (r raise) Writes() bool                  { return true }
func (r raise) Words(bool) []any              { return r.words }
func (r raise) Apply(*cell.Store) cell.Answer { return cell.Answer{} }

func (r raise) Decode(any) (cell.Answer, error) { return cell.Answer{Did: true}, nil }
