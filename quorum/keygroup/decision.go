package keygroup

import (
	"time"

	"redlock-proxy/quorum/register"
)

const year = 365 * 24 * time.Hour

const (
	// endlessTTL is the time of a cell with a key without expiry. The cell is renewed when less
	// than renewBelow remains.
	endlessTTL, renewBelow = 100 * year, 50 * year
	// minMargin is how long a cell must outlast its last key: longer than a ballot takes. A longer
	// margin only saves shifts. A cell that too few masters hold is in the way until its end.
	minMargin = time.Second
)

// cellTTL returns the time of a cell whose last key ends after longest. The margin avoids a shift
// at each extension of that key.
func cellTTL(longest time.Duration) time.Duration {
	return (longest + longest/2 + 2*minMargin).Truncate(time.Millisecond)
}

// outlivesKeys reports whether a cell stays much longer than needed.
func outlivesKeys(ttl, longest time.Duration) bool { return ttl > 2*longest+6*minMargin }

// Lease returns the longest time that a key was given since the keygroup was opened, or Endless.
// given is false if no key was given a time.
func (b *Group) Lease() (longest time.Duration, given bool) {
	for _, k := range b.keys {
		if k.new && (!given || k.left < 0 || longest >= 0 && k.left > longest) {
			longest, given = k.left, true
		}
	}
	return longest, given
}

// Encode returns the decision that stores the present keys in the cell. version must be unique.
// Seal omits expired keys, but they alone are no reason to write.
//
// Errors: ErrTooLarge; register.ErrNeedsLeft if a key has to keep its end, which is unknown.
func (b *Group) Encode(version string) (register.Decision, error) {
	switch {
	case !b.changed:
		return register.Decision{}, nil
	case len(b.keys) == 0 && !b.found.Present:
		return register.Decision{}, nil
	case len(b.keys) == 0:
		return register.Decision{Do: register.Remove}, nil
	}
	all := b.sorted()
	d := register.Decision{Do: register.Put}
	// A key of a keygroup that did not change keeps its version, so it stays in the keygroup.
	if own := all[0]; len(all) == 1 && own.name == b.name && (own.new || own.version == "" || !b.isGroup) {
		b.encodeAlone(&d, own)
		return d, nil
	}
	if err := b.setEnds(&d, all); err != nil {
		return register.Decision{}, err
	}
	members := make([]member, len(all))
	for i, k := range all {
		if k.version == "" {
			k.version = version
		}
		members[i] = k.member
	}
	if d.Value = encode(members); len(d.Value) > MaxBytes {
		return register.Decision{}, ErrTooLarge
	}
	return d, nil
}

// encodeAlone decides for the key of the cell's name alone, which is stored without a keygroup.
func (b *Group) encodeAlone(d *register.Decision, own key) {
	d.Value = own.value
	switch {
	case own.new:
		d.TTL = own.left
	case !b.isGroup:
		d.KeepTTL = true
	case own.distance == Endless:
		d.TTL = Endless
	default:
		d.KeepTTL, d.Shift, d.Shared = true, -own.distance, true
	}
}

// measureOwn gives a new time to the key that was stored without a keygroup, when other keys join
// it. The time is that of the master on which the key ends last. An extension a moment ago may have
// reached only one of the masters asked.
func (b *Group) measureOwn(all []key) error {
	for i, k := range all {
		switch {
		case b.isGroup || k.new:
		case b.found.Unknown:
			return register.ErrNeedsLeft
		default:
			all[i].new, all[i].left = true, b.found.Longest
		}
	}
	return nil
}

// setEnds sets the end of the cell, and the distances of the keys to it.
func (b *Group) setEnds(d *register.Decision, all []key) error {
	d.Shared = true
	if err := b.measureOwn(all); err != nil {
		return err
	}
	kept, endless, longest := false, false, time.Duration(0) // longest of the keys with an expiry
	for _, k := range all {
		switch {
		case k.new && k.left < 0, !k.new && k.distance == Endless:
			endless = true
		case k.new:
			longest = max(longest, k.left)
		default:
			kept = true
			longest = max(longest, b.found.Shortest-k.distance)
		}
	}
	ttl := cellTTL(longest)
	if endless {
		ttl = endlessTTL
	}
	switch now := b.found.Shortest; {
	case !kept: // nothing depends on the previous end
		d.TTL = ttl
	case endless && now >= renewBelow, !endless && now-longest >= minMargin && !outlivesKeys(now, longest):
		d.KeepTTL, ttl = true, now
	default:
		d.KeepTTL, d.Shift = true, ttl-now
	}
	for i, k := range all {
		switch {
		case k.new && k.left < 0, !k.new && k.distance == Endless:
			all[i].distance = Endless
		case k.new:
			all[i].distance = ttl - k.left
		default:
			all[i].distance += d.Shift
		}
	}
	return nil
}
