package bag

import (
	"time"

	"redlock-proxy/quorum/register"
)

// year is one.
const year = 365 * 24 * time.Hour

const (
	// longRest is what a cell has in which some key has no end, and renewAt what is left of that
	// when it gets it anew.
	longRest, renewAt = 100 * year, 50 * year
	// shortestRest is for how long a cell has to outlast its last key: longer than a ballot takes.
	// What is longer than that is for nothing but fewer shifts, and a cell that too few masters
	// hold is in the way until its end.
	shortestRest = time.Second
)

// restFor is what a cell gets whose last key ends after a time: so much that it need not be shifted
// whenever that one is extended.
func restFor(longest time.Duration) time.Duration {
	return (longest + longest/2 + 2*shortestRest).Truncate(time.Millisecond)
}

// isTooLong is true of a cell that stays for much longer than there is need.
func isTooLong(rest, longest time.Duration) bool { return rest > 2*longest+6*shortestRest }

// Lease is the longest time that a key was given since the bag was opened, or Endless; any is false
// where none was.
func (b *Bag) Lease() (longest time.Duration, any bool) {
	for _, k := range b.keys {
		if k.new && (!any || k.left < 0 || longest >= 0 && k.left > longest) {
			longest, any = k.left, true
		}
	}
	return longest, any
}

// Seal is what has the cell hold the keys as they are now; a version is given that nothing had
// before. Keys that are over are left out, but that alone is no reason to write.
//
// Errors: ErrTooLarge; register.ErrNeedsLeft where a key is to keep its end, which is not known.
func (b *Bag) Seal(version string) (register.Decision, error) {
	switch {
	case !b.changed:
		return register.Decision{}, nil
	case len(b.keys) == 0 && !b.found.Present:
		return register.Decision{}, nil
	case len(b.keys) == 0:
		return register.Decision{Do: register.Remove}, nil
	}
	all := b.sorted()
	w := register.Decision{Do: register.Put}
	// A key of a bag that is not changed keeps its version, so it stays in the bag.
	if own := all[0]; len(all) == 1 && own.name == b.name && (own.new || own.version == "" || !b.isBag) {
		b.sealOwn(&w, own)
		return w, nil
	}
	if err := b.time(&w, all); err != nil {
		return register.Decision{}, err
	}
	members := make([]member, len(all))
	for i, k := range all {
		if k.version == "" {
			k.version = version
		}
		members[i] = k.member
	}
	if w.Value = encode(members); len(w.Value) > MaxBytes {
		return register.Decision{}, ErrTooLarge
	}
	return w, nil
}

// sealOwn is for the key of the cell's name alone: it is kept by itself.
func (b *Bag) sealOwn(w *register.Decision, own key) {
	w.Value = own.value
	switch {
	case own.new:
		w.TTL = own.left
	case !b.isBag:
		w.KeepTTL = true
	case own.before == Endless:
		w.TTL = Endless
	default:
		w.KeepTTL, w.Shift, w.Shared = true, -own.before, true
	}
}

// measureOwn is for the key that was kept by itself when others come. Its end is taken from the
// master on which it ends last, and measured anew: one that was extended a moment ago may be so on
// one of those asked.
func (b *Bag) measureOwn(all []key) error {
	for i, k := range all {
		switch {
		case b.isBag || k.new:
		case b.found.Unknown:
			return register.ErrNeedsLeft
		default:
			all[i].new, all[i].left = true, b.found.Longest
		}
	}
	return nil
}

// time gives the cell its end, and the keys their distances to it.
func (b *Bag) time(w *register.Decision, all []key) error {
	w.Shared = true
	if err := b.measureOwn(all); err != nil {
		return err
	}
	kept, endless, longest := false, false, time.Duration(0) // of the keys that end
	for _, k := range all {
		switch {
		case k.new && k.left < 0, !k.new && k.before == Endless:
			endless = true
		case k.new:
			longest = max(longest, k.left)
		default:
			kept = true
			longest = max(longest, b.found.Shortest-k.before)
		}
	}
	rest := restFor(longest)
	if endless {
		rest = longRest
	}
	switch now := b.found.Shortest; {
	case !kept: // nothing depends on the end that it had
		w.TTL = rest
	case endless && now >= renewAt, !endless && now-longest >= shortestRest && !isTooLong(now, longest):
		w.KeepTTL, rest = true, now
	default:
		w.KeepTTL, w.Shift = true, rest-now
	}
	for i, k := range all {
		switch {
		case k.new && k.left < 0, !k.new && k.before == Endless:
			all[i].before = Endless
		case k.new:
			all[i].before = rest - k.left
		default:
			all[i].before += w.Shift
		}
	}
	return nil
}
