package bag

import "time"

// year is one.
const year = 365 * 24 * time.Hour

const (
	// longRest is what a cell has in which some key has no end, and renewAt what is left of that when it gets it anew.
	longRest, renewAt = 100 * year, 50 * year
	// shortestRest is for how long a cell has to outlast its last key: longer than a ballot takes. What is longer than that is for
	// nothing but fewer shifts, and a cell that too few masters hold is in the way until its end.
	shortestRest = time.Second
)

// restFor is what a cell gets whose last key ends after a time: so much that it need not be shifted whenever that one is extended.
func restFor(longest time.Duration) time.Duration {
	return (longest + longest/2 + 2*shortestRest).Truncate(time.Millisecond)
}

// isTooLong is true of a cell that stays for much longer than there is need.
func isTooLong(rest, longest time.Duration) bool { return rest > 2*longest+6*shortestRest }

// Do is what is done to a cell.
type Do int

const (
	Leave  Do = iota // nothing
	Put              // a value is put there
	Remove           // the cell is removed
)

// Write is what a cell is to hold.
type Write struct {
	Do   Do
	Text string
	// TTL is the cell's, in whole milliseconds, or Endless. With Keep it keeps its end instead, shifted by Shift on each master.
	TTL   time.Duration
	Keep  bool
	Shift time.Duration
	// Shared is set where keys besides that of the cell's name depend on its end, or did until now.
	Shared bool
	// Lease is the longest time that a key got, or Endless; it means nothing unless Leases is set.
	Lease  time.Duration
	Leases bool
}

// Seal is what has the cell hold the keys as they are now; a version is given that nothing had before. Keys that are over
// are left out, but that alone is no reason to write.
//
// Errors: ErrTooLarge; ErrNeedsTime where a key is to keep its end, which is not known.
func (b *Bag) Seal(version string) (Write, error) {
	switch {
	case !b.changed:
		return Write{}, nil
	case len(b.keys) == 0 && !b.found.Present:
		return Write{}, nil
	case len(b.keys) == 0:
		return Write{Do: Remove}, nil
	}
	all := b.sorted()
	w := Write{Do: Put}
	for _, k := range all {
		if k.new && (!w.Leases || k.left < 0 || w.Lease >= 0 && k.left > w.Lease) {
			w.Lease, w.Leases = k.left, true
		}
	}
	// A key of a bag that is not changed keeps its version, so it stays in the bag.
	if own := all[0]; len(all) == 1 && own.name == b.found.Name && (own.new || own.version == "" || !b.isBag) {
		b.sealOwn(&w, own)
		return w, nil
	}
	if err := b.time(&w, all); err != nil {
		return Write{}, err
	}
	members := make([]member, len(all))
	for i, k := range all {
		if k.version == "" {
			k.version = version
		}
		members[i] = k.member
	}
	if w.Text = encode(members); len(w.Text) > MaxBytes {
		return Write{}, ErrTooLarge
	}
	return w, nil
}

// sealOwn is for the key of the cell's name alone: it is kept by itself.
func (b *Bag) sealOwn(w *Write, own key) {
	w.Text = own.value
	switch {
	case own.new:
		w.TTL = own.left
	case !b.isBag:
		w.Keep = true
	case own.before == Endless:
		w.TTL = Endless
	default:
		w.Keep, w.Shift, w.Shared = true, -own.before, true
	}
}

// measureOwn is for the key that was kept by itself when others come. Its end is taken from the master on which it ends last, and
// measured anew: one that was extended a moment ago may be so on one of those asked.
func (b *Bag) measureOwn(all []key) error {
	for i, k := range all {
		switch {
		case b.isBag || k.new:
		case b.found.Unknown:
			return ErrNeedsTime
		default:
			all[i].new, all[i].left = true, b.found.Longest
		}
	}
	return nil
}

// time gives the cell its end, and the keys their distances to it.
func (b *Bag) time(w *Write, all []key) error {
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
		w.Keep, rest = true, now
	default:
		w.Keep, w.Shift = true, rest-now
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
