package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/marker"
)

// Locks are those that stand on a master, whether or not a majority granted them.
type Locks struct {
	// Count is how many there are.
	Count int
	// Left is the longest remaining time among them; cell.Endless where one has no end.
	Left time.Duration
}

// LocksOn counts the locks in these databases of a master, and the blocking copies, which may
// be of locks. What was removed by a ballot does not count.
func LocksOn(ctx context.Context, w Conn, databases []int) (Locks, error) {
	var found Locks
	for _, db := range databases {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			p, err := readPage(ctx, w, db, cursor, marker.NoClaim, "")
			if err != nil {
				return Locks{}, err
			}
			for _, e := range p.entries {
				found.add(e)
			}
			cursor = p.cursor
		}
	}
	return found, nil
}

func (l *Locks) add(e entry) {
	if c := cell.Parse(e.value); !c.Value.Present && c.Form != cell.Blocking {
		return
	}
	l.Count++
	switch {
	case e.left < 0, l.Left == cell.Endless:
		l.Left = cell.Endless
	default:
		l.Left = max(l.Left, e.left)
	}
}

// Outlasts reports whether one of the locks may be held for longer than a TTL from now.
func (l Locks) Outlasts(ttl time.Duration) bool {
	return l.Count > 0 && (l.Left == cell.Endless || l.Left > ttl)
}
