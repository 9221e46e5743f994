package commands

import (
	"time"

	"redlock-proxy/commands/register"
	"redlock-proxy/quorum"
)

// view is what the masters hold under keys.
type view map[string]quorum.Holding

// contested reports whether it is open for some key who holds it, or whether anybody
// does.
func (v view) contested() bool {
	for _, h := range v {
		if !h.Held && !h.Free {
			return true
		}
	}
	return false
}

// unsure reports whether that is so because too few masters answer.
func (v view) unsure() bool {
	for _, h := range v {
		if !h.Held && h.Unsure {
			return true
		}
	}
	return false
}

// mixed reports whether masters hold different values under some key.
func (v view) mixed() bool {
	for _, h := range v {
		if h.Mixed {
			return true
		}
	}
	return false
}

// leftover reports whether a value without expiry stands on some masters under a key
// that nobody holds: it does not go away by itself.
func (v view) leftover() bool {
	for _, h := range v {
		if h.Free && h.Split && h.Left < 0 {
			return true
		}
	}
	return false
}

// clear reports whether the view says of each key who holds it, or that nobody does.
func (v view) clear() bool { return v != nil && !v.contested() }

// holds reports whether a majority holds what the edits change.
func (v view) holds(edits []register.Edit) bool {
	for _, e := range edits {
		if h := v[e.Key]; e.Changes() && !(h.Held && h.Value == e.Was.Value) {
			return false
		}
	}
	return true
}

// free reports whether nobody holds what the edits change.
func (v view) free(edits []register.Edit) bool {
	for _, e := range edits {
		if e.Changes() && !v[e.Key].Free {
			return false
		}
	}
	return true
}

// space is the view as a program sees it: a value that has no majority counts as
// held, or as if it were not there.
func (v view) space(now time.Time, splitHeld bool) *register.Space {
	s := register.NewSpace(now)
	for key, h := range v {
		if h.Held || h.Split && splitHeld {
			s.Put(key, register.Entry{Present: true, Value: h.Value, Left: leftOf(h)})
		} else {
			s.Put(key, register.Entry{})
		}
	}
	return s
}

// strangers is the view with a value in place of each that has no majority which no
// client has ever written.
func (v view) strangers(now time.Time) *register.Space {
	s := v.space(now, true)
	for key, h := range v {
		if h.Split {
			s.Put(key, register.Entry{Present: true, Value: stranger, Left: leftOf(h)})
		}
	}
	return s
}

func leftOf(h quorum.Holding) time.Duration {
	if h.Left < 0 {
		return register.Endless
	}
	return h.Left.Truncate(time.Millisecond)
}

// space is the guess as a program sees it.
func (g guess) space(now time.Time) *register.Space {
	s := register.NewSpace(now)
	for key, e := range g {
		s.Put(key, e)
	}
	return s
}

// guessAbsent is that none of the keys is there.
func guessAbsent(keys []string) guess {
	g := guess{}
	for _, key := range keys {
		g[key] = register.Entry{}
	}
	return g
}

// guessHeld is that each of the keys holds the value.
func guessHeld(keys []string, value string) guess {
	g := guess{}
	for _, key := range keys {
		g[key] = register.Entry{Present: true, Value: value, Left: register.Unknown}
	}
	return g
}

// places are where keys stand on the masters.
func (t *Table) places(db int, keys []string) []quorum.Key {
	places := make([]quorum.Key, len(keys))
	for i, key := range keys {
		places[i] = t.place(db, key)
	}
	return places
}

// place is where a key stands on the masters.
func (t *Table) place(db int, key string) quorum.Key {
	return quorum.Key{DB: db, Name: t.opts.KeyPrefix + key}
}

// quorumEdits are edits of a Space as the masters make them.
func (t *Table) quorumEdits(db int, edits []register.Edit) []quorum.Edit {
	all := make([]quorum.Edit, len(edits))
	for i, e := range edits {
		all[i] = quorum.Edit{Key: t.place(db, e.Key), Was: quorumEntry(e.Was), Now: quorumEntry(e.Now), KeepLeft: e.KeepLeft}
	}
	return all
}

// quorumEntry is an Entry of the masters. A remaining time that is not known is 0
// there.
func quorumEntry(e register.Entry) quorum.Entry {
	left := e.Left
	switch left {
	case register.Endless:
		left = quorum.Endless
	case register.Unknown:
		left = 0
	}
	return quorum.Entry{Present: e.Present, Value: e.Value, Left: left}
}
