package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/register"
)

// DefaultMaxTTL is the longest TTL that locks are taken to have where Options does not
// say.
const DefaultMaxTTL = 24 * time.Hour

// longestOf is the key in whose order the record of the longest TTL is raised.
var longestOf = Key{Name: script.LongestKey}

// record makes sure that the longest TTL in use, on a majority of the masters, is not
// less than ttl; a lock without expiry counts as the limit.
func (c *Cluster) record(ctx context.Context, ttl time.Duration) error {
	if ttl < 0 {
		ttl = c.guards.MaxTTL()
	}
	if c.unguarded || c.guards.IsRecorded(ttl) {
		return nil
	}
	if voting(c.masters) < Majority(len(c.masters)) {
		// Nothing would come of it, but the masters in quarantine would wait for that TTL.
		if _, err := c.keyspace(0).Read(ctx, []string{longestOf.Name}); err != nil {
			return c.explain(err)
		}
	}
	words, recorded := c.guards.Recording(ttl)
	ops := make([]cell.Op, len(c.masters))
	for i := range ops {
		ops[i] = raise{words}
	}
	r, err := c.ask(ctx, longestOf, ops, isRaised)
	switch {
	case err != nil:
		return err
	case !isRaised(r.Replies()):
		return c.explain(&register.NoQuorum{Replies: r.Replies()})
	}
	c.guards.Recorded(recorded)
	return nil
}

// isRaised reports whether a majority has the record.
func isRaised(replies []register.Reply) bool {
	yes := 0
	for _, got := range replies {
		if got.State == register.Counted {
			yes++
		}
	}
	return yes >= Majority(len(replies))
}

// raise raises the record of the longest TTL. It is never run on a cell.Store.
type raise struct{ words []any }

func (r raise) Keys() []string                { return []string{longestOf.Name} }
func (r raise) Writes() bool                  { return true }
func (r raise) Words(bool) []any              { return r.words }
func (r raise) Apply(*cell.Store) cell.Answer { return cell.Answer{} }

func (r raise) Decode(any) (cell.Answer, error) { return cell.Answer{Did: true}, nil }
