package quorum

import (
	"context"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

// database is one database of the masters: a register, and its access to the masters.
type database struct {
	*register.Register
	set *masterSet
	db  int
}

// database returns the database with this number, and creates it at the first call.
func (set *masterSet) database(db int) *database {
	if d, ok := set.databases.Load(db); ok {
		return d.(*database)
	}
	d := &database{set: set, db: db}
	d.Register = register.New(register.Options{
		N: len(set.masters), Masters: d, Source: set.source,
		ContentionTimeout: contentionTimeout, MinTries: MinTries, PromiseNextBallot: true, ContentionPause: contentionPause,
		Unlimited: set.unguarded, IsKeygroup: keygroup.HasExpiries,
		OnFenceAhead: func(m int, key string) { set.guards.WarnFenceAhead(set.masters[m].Name(), key) },
	})
	actual, _ := set.databases.LoadOrStore(db, d)
	return actual.(*database)
}

// contentionTimeout limits the retries of a command while other clients change the same key.
const contentionTimeout = 5 * time.Second

// MinTries is the minimum number of tries. If each try takes 200 ms, these tries take about as long
// as contentionTimeout.
const MinTries = 25

// contentionPause is the pause under contention: a few round trips.
const contentionPause = 3 * time.Millisecond

// Ask implements register.Masters. If the operations free a key, Ask notifies waiters in this
// process before it sends the operations. Then the same batch carries the next waiter's take, or
// the operation that leaves the lock to another proxy. If the operations take keys, Ask sends them
// through Cluster.onTaking, which may add a question whether other proxies have waiters.
func (d *database) Ask(
	ctx context.Context, ops []cell.Op, decided func([]register.Reply) bool,
) (register.Round, error) {
	var r *master.Round
	set := d.set
	if name, frees := freedKey(ops); frees {
		r = set.rounds.Send(set.masters, d.db, ops, decided, func() bool {
			return set.cluster.onFreed(Key{DB: d.db, Name: name}, Unlimited)
		})
	} else if names := takenKeys(ops); len(names) > 0 {
		d.announceTake(names, func(afterQueueing func()) {
			r = set.rounds.Send(set.masters, d.db, ops, decided, afterQueued(afterQueueing))
		})
	} else {
		r = set.rounds.Send(set.masters, d.db, ops, decided, nil)
	}
	return r, r.Wait(ctx)
}

// freedKey returns the key whose lock the operations release, or remove by ballot. Its waiters can
// be notified as soon as the operations are queued, because later operations on the key are sent
// after them.
func freedKey(ops []cell.Op) (name string, frees bool) {
	for _, o := range ops {
		switch o := o.(type) {
		case nil:
		case cell.Remove:
			return o.Name, o.Mode == cell.Release
		case cell.Accept:
			return o.Name, !o.Value.Present
		default:
			return "", false
		}
	}
	return "", false
}

// afterQueued returns the onQueued callback of a round. The callback calls queueMore, and reports
// that no further operations follow. afterQueued returns nil if queueMore is nil.
func afterQueued(queueMore func()) (queued func() bool) {
	if queueMore == nil {
		return nil
	}
	return func() bool { queueMore(); return false }
}

// takenKeys returns the keys that the operations take.
func takenKeys(ops []cell.Op) []string {
	for _, o := range ops {
		if take, ok := o.(cell.Take); ok {
			return take.Names
		}
		if o != nil {
			break
		}
	}
	return nil
}

// announceTake informs the waiters of keys that a command is about to take. It calls send once, as
// Cluster.onTaking does.
func (d *database) announceTake(names []string, send func(afterQueueing func())) {
	key := Key{DB: d.db, Name: names[0]}
	if len(names) == 1 {
		d.set.cluster.onTaking(key, send)
		return
	}
	d.set.cluster.onTaking(key, func(first func()) {
		d.announceTake(names[1:], func(others func()) { send(inOrder(first, others)) })
	})
}

// inOrder returns a function that calls two functions, of which either may be nil.
func inOrder(first, second func()) func() {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func() { first(); second() }
}

// Tell implements register.Masters.
func (d *database) Tell(i int, op cell.Op, untilReplied bool) {
	d.set.masters[i].Tell(d.db, op, untilReplied)
}

// RunAfter implements register.Masters.
func (d *database) RunAfter(delay time.Duration, f func()) { d.set.runAfter(delay, f) }

// HasAllVotes implements register.Masters.
func (d *database) HasAllVotes() bool { return d.set.allVote() }

// ScheduleCompare implements register.Masters.
func (d *database) ScheduleCompare() { d.set.databasesToCompare.add(d.db) }

// VoterCount implements register.Masters.
func (d *database) VoterCount() int { return countVoting(d.set.masters) }

// Clock implements register.Masters.
func (d *database) Clock() time.Duration { return d.set.guards.Clock(time.Now()) }

// Pause implements register.Masters. It waits at most 2 ms after the first failure, and at most 16
// ms after four or more failures.
func (d *database) Pause(ctx context.Context, failures int) error {
	maxPause := time.Millisecond << min(failures, 4)
	return pacing.Sleep(ctx, time.Duration(d.set.rand()*float64(maxPause)))
}

// Now implements register.Masters.
func (d *database) Now() time.Time { return time.Now() }

// maxTTLKey is the key that holds the record of the longest TTL. Operations on one key keep their
// order, so the operations that raise the record name this key.
var maxTTLKey = Key{Name: script.MaxTTLKey}

// recordMaxTTL ensures that a majority of the masters has recorded at least ttl as the longest TTL
// in use. A lock without expiry counts as a lock with the longest allowed TTL (Options.MaxTTL).
func (set *masterSet) recordMaxTTL(ctx context.Context, ttl time.Duration) error {
	if ttl < 0 {
		ttl = set.guards.MaxTTL()
	}
	if set.unguarded || set.guards.IsRecorded(ttl) {
		return nil
	}
	if countVoting(set.masters) < Majority(len(set.masters)) {
		// Without a majority a record would not help, and the masters in quarantine would wait
		// until the recorded TTL has passed.
		if _, err := set.database(0).Read(ctx, []string{maxTTLKey.Name}); err != nil {
			return set.translate(err)
		}
	}
	words, recordedTTL := set.guards.RecordTTLCommand(ttl)
	ops := make([]cell.Op, len(set.masters))
	for i := range ops {
		ops[i] = raiseMaxTTL{words}
	}
	r, err := set.database(maxTTLKey.DB).Ask(ctx, ops, register.HasAnswerQuorum)
	switch {
	case err != nil:
		return err
	case !register.HasAnswerQuorum(r.Replies()):
		return set.translate(&register.NoQuorum{Replies: r.Replies()})
	}
	set.guards.NoteTTLRecorded(recordedTTL)
	return nil
}

// raiseMaxTTL is the operation that raises the record of the longest TTL. Its method Apply is never
// called.
type raiseMaxTTL struct{ words []any }

func (r raiseMaxTTL) Keys() []string                { return []string{maxTTLKey.Name} }
func (r raiseMaxTTL) Writes() bool                  { return true }
func (r raiseMaxTTL) Words(bool) []any              { return r.words }
func (r raiseMaxTTL) Apply(*cell.Store) cell.Answer { return cell.Answer{} }

func (r raiseMaxTTL) Decode(any) (cell.Answer, error) { return cell.Answer{Applied: true}, nil }
