package guard

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// A marker shows the lineage of the data, not their age: it is the same on a replica, on
// yesterday's disk, in a snapshot. So there is a sequence beside it, one for each database,
// which every batch that writes raises. Its field has the marker's nonce and the number of
// the database: where the data are others, or none, it begins with 1 there, far below
// script.FirstAge. What a proxy has seen of it, it leaves on the other masters.

// age is the highest number known of a sequence of the master.
func (g *Guard) age(field string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.ages[field], script.FirstAge)
}

// knows is the age of a sequence, and the canary of its database.
func (g *Guard) knows(field string, db int) (age int64, c canary) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.ages[field], script.FirstAge), g.canaries[db]
}

// livingAges are the sequences of the marker that the master votes under.
func (g *Guard) livingAges() ages {
	g.mu.Lock()
	defer g.mu.Unlock()
	living := ages{}
	for field, n := range g.ages {
		if g.last.Nonce != "" && strings.HasPrefix(field, g.last.Nonce+"@") {
			living[field] = n
		}
	}
	return living
}

// leaveAges leaves on this master what is known of the others.
func (g *Guard) leaveAges(ctx context.Context) error {
	known := ages{}
	for _, other := range g.set.guards {
		if other != g {
			maps.Copy(known, other.livingAges())
		}
	}
	words := g.left.due(known, time.Now())
	if len(words) == 0 {
		return nil
	}
	if _, err := amend(ctx, g.Conn, script.KeepAges, append([]any{marker.Millis(ageKept)}, words...)...); err != nil {
		clear(g.left) // perhaps it did not arrive
		return err
	}
	return nil
}

// introduce leaves on the other masters that the sequence of a nonce begins, before this master is
// admitted under it: from its first vote on they know that it has all its data, also if every proxy
// ends before it looks at them again. Nothing is lost where that fails: then they learn it within a
// second.
func (g *Guard) introduce(ctx context.Context, nonce string) {
	g.leaveElsewhere(ctx, nonce, script.FirstAge)
}

// retire leaves on the other masters that data with the marker of a nonce are older than any:
// another took its place, or what it proved is over. So nobody believes a disk that is set back to
// it, however far it had come.
func (g *Guard) retire(ctx context.Context, v Report, stays string) {
	m, r := v.Marker.Value, v.Record.Value
	if v.Marker.Valid && m.Nonce != stays && (m.Address == g.Name || m.Nonce == g.lastNonce()) { // else another master may vote under it
		g.leaveElsewhere(ctx, m.Nonce, retiredAge)
	}
	if r.Claim != "" && r.Claim != marker.NoClaim && r.Claim != stays {
		g.leaveElsewhere(ctx, r.Claim, retiredAge)
	}
}

// lastNonce is of the last marker that the master voted under here.
func (g *Guard) lastNonce() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last.Nonce
}

func (g *Guard) leaveElsewhere(ctx context.Context, nonce string, n int64) {
	countAtOnce(g.set.guards, func(other *Guard) bool {
		if other == g || !other.keepsAges() {
			return false
		}
		_, err := amend(ctx, other.Conn, script.KeepAges, marker.Millis(ageKept), marker.InDatabase(nonce, 0), n)
		return err == nil
	})
}

// keepsAges reports whether anything may be left on the master: it answers, and is none that is to
// stay empty.
func (g *Guard) keepsAges() bool {
	if g.IsDown() {
		return false
	}
	cause := g.Quarantine()
	return cause == nil || cause.Why != Blank && cause.Why != AwaitsFreshStart && cause.Why != Unproven
}

// agesElsewhere asks all other masters that answer, whatever their standing.
func (g *Guard) agesElsewhere(ctx context.Context, nonce string, has ages) elsewhere {
	w := elsewhere{ages: ages{}}
	var fields []any
	for field := range has {
		fields = append(fields, field)
	}
	for _, other := range g.set.guards {
		if other == g || other.IsDown() {
			continue
		}
		parts, err := ask(ctx, other.Conn, len(fields), 0, script.KeptAges, fields...)
		if err != nil {
			continue
		}
		for i, text := range parts {
			n, _ := strconv.ParseInt(text, 10, 64)
			w.ages.saw(fmt.Sprint(fields[i]), n)
			if n > 0 && fields[i] == marker.InDatabase(nonce, 0) {
				w.masters++
			}
		}
	}
	return w
}

// ownAges are the master's own numbers of the sequences of a nonce. One that is missing in
// a database that has one is zero.
func (g *Guard) ownAges(ctx context.Context, nonce string) (ages, error) {
	parts, err := ask(ctx, g.Conn, 0, 2, script.Sequences, nonce)
	if err != nil {
		return nil, err
	}
	has := ages{}
	for ; len(parts) > 0; parts = parts[2:] {
		n, _ := strconv.ParseInt(parts[1], 10, 64)
		has[parts[0]] = n
	}
	return has, nil
}
