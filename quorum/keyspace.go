package quorum

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

// keyspace is one database of the masters: a register and how it reaches them.
type keyspace struct {
	*register.Register
	cluster *Cluster
	db      int
}

// keyspace is that of a database; each is made once.
func (c *Cluster) keyspace(db int) *keyspace {
	if k, ok := c.keyspaces.Load(db); ok {
		return k.(*keyspace)
	}
	k := &keyspace{cluster: c, db: db}
	k.Register = register.New(register.Options{
		N: len(c.masters), Masters: k, Source: c.source, Patience: patience, Keep: true, Yield: yieldTime, Unlimited: c.unguarded,
	})
	known, _ := c.keyspaces.LoadOrStore(db, k)
	return known.(*keyspace)
}

// patience is how long a command is tried again because others change the same key.
const patience = 5 * time.Second

// yieldTime is some round trips.
const yieldTime = 3 * time.Millisecond

// Ask is of register.Masters.
func (k *keyspace) Ask(ctx context.Context, ops []cell.Op, decided func([]register.Reply) bool) (register.Asked, error) {
	return k.cluster.ask(ctx, k.keyOf(ops), ops, decided)
}

// ask has each master do one of the operations, and waits until it is decided. Those who wait
// for the key are told at once of what frees it.
func (c *Cluster) ask(ctx context.Context, key Key, ops []cell.Op, decided func([]register.Reply) bool) (*master.Round, error) {
	r := master.Send(c.masters, key.DB, ops, decided)
	if frees(ops) {
		c.freed(key)
	}
	return r, r.Wait(ctx)
}

// frees reports whether the operations release a lock, or remove it by ballot: what waits for it
// can be told as soon as they are sent, because what follows of the same key comes after them.
func frees(ops []cell.Op) bool {
	for _, o := range ops {
		switch o := o.(type) {
		case nil:
		case cell.Remove:
			return o.How == cell.Release
		case cell.Accept:
			return !o.Value.Present
		default:
			return false
		}
	}
	return false
}

// keyOf is the first key of the operations.
func (k *keyspace) keyOf(ops []cell.Op) Key {
	for _, o := range ops {
		if o != nil {
			return Key{DB: k.db, Name: o.Keys()[0]}
		}
	}
	return Key{DB: k.db}
}

// Tell is of register.Masters.
func (k *keyspace) Tell(i int, do cell.Op, owed bool) {
	k.cluster.masters[i].Tell(k.db, do, owed)
}

// After is of register.Masters.
func (k *keyspace) After(d time.Duration, f func()) { k.cluster.after(d, f) }

// Well is of register.Masters.
func (k *keyspace) Well() bool {
	return !slices.ContainsFunc(k.cluster.masters, func(m *master.Master) bool { return !m.Votes() })
}

// Voters is of register.Masters.
func (k *keyspace) Voters() int { return voting(k.cluster.masters) }

// Clock is of register.Masters.
func (k *keyspace) Clock() time.Duration { return k.cluster.guards.Clock(time.Now()) }

// Pause is of register.Masters: up to 2 ms after the first failure, 16 ms after many.
func (k *keyspace) Pause(ctx context.Context, failures int) error {
	longest := time.Millisecond << min(failures, 4)
	timer := time.NewTimer(time.Duration(k.cluster.rand() * float64(longest)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Now is of register.Masters.
func (k *keyspace) Now() time.Time { return time.Now() }
