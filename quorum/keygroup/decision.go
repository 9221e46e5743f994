package keygroup

import (
	"time"

	"redlock-proxy/quorum/register"
)

const year = 365 * 24 * time.Hour

const (
	// endlessTTL is the TTL of a cell that holds a key without expiry. The cell is renewed when
	// less than renewBelow remains.
	endlessTTL, renewBelow = 100 * year, 50 * year
	// minMargin is the time by which a cell must outlast its last key: longer than a ballot. More
	// only saves shifts, but a cell that too few masters hold blocks the key until its expiry.
	minMargin = time.Second
)

// cellTTL returns the TTL of a cell whose last key expires after longest. The margin avoids a shift
// at each extension of that key.
func cellTTL(longest time.Duration) time.Duration {
	return (longest + longest/2 + 2*minMargin).Truncate(time.Millisecond)
}

// outlivesKeys reports whether a TTL is much longer than needed.
func outlivesKeys(ttl, longest time.Duration) bool { return ttl > 2*longest+6*minMargin }

// Lease returns the longest time, or Endless, that a key was given since Open, if any was.
func (b *Group) Lease() (longest time.Duration, given bool) {
	for _, k := range b.keys {
		if k.new && (!given || k.left < 0 || longest >= 0 && k.left > longest) {
			longest, given = k.left, true
		}
	}
	return longest, given
}

// Encode returns the decision that stores the present keys under a unique version. It omits expired
// keys, but they alone are no reason to write.
//
// Errors: ErrTooLarge; register.ErrNeedsLeft if a key keeps an expiry that is unknown.
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
	// An unchanged key of a keygroup must keep its version, so it stays in the keygroup.
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

// encodeAlone stores the key of the cell's name without a keygroup.
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
// it: the time on the master on which it expires last, because a recent extension may have reached
// only one of the masters asked.
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

// setEnds sets the expiry of the cell and the distances of the keys.
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
	case !kept: // nothing depends on the previous expiry
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
