package keygroup

import (
	"time"

	"redlock-proxy/quorum/register"
)

const year = 365 * 24 * time.Hour

const (
	// noExpiryTTL is the TTL of a cell that holds a key without expiry. Encode renews this TTL if
	// less than renewalThreshold remains.
	noExpiryTTL, renewalThreshold = 100 * year, 50 * year
	// minMargin is the time by which a cell must outlast its last key: longer than a ballot. A
	// longer margin saves shifts. But a cell on too few masters blocks the key until the cell
	// expires.
	minMargin = time.Second
)

// cellTTL returns the TTL of a cell whose last key expires after longestTTL. The margin avoids a
// shift at each extension of that key.
func cellTTL(longestTTL time.Duration) time.Duration {
	return (longestTTL + longestTTL/2 + 2*minMargin).Truncate(time.Millisecond)
}

// isMuchLongerThanNeeded reports whether the TTL of a cell exceeds the longest TTL of its keys so
// much that a shift is worthwhile.
func isMuchLongerThanNeeded(ttl, longestTTL time.Duration) bool {
	return ttl > 2*longestTTL+6*minMargin
}

// LongestNewTTL returns the longest TTL, or NoExpiry, that a key got since Open. exists is false if
// no key got a TTL.
func (b *Group) LongestNewTTL() (longestTTL time.Duration, exists bool) {
	for _, k := range b.keys {
		if k.hasNewTTL && (!exists || k.newTTL < 0 || longestTTL >= 0 && k.newTTL > longestTTL) {
			longestTTL, exists = k.newTTL, true
		}
	}
	return longestTTL, exists
}

// Encode returns the decision that stores the keys. Changed keys get version, which must be unique.
// Encode omits expired keys, but does not write only to remove them.
//
// Errors: ErrTooLarge; register.ErrTTLUnknown if a key keeps an expiry that is unknown.
func (b *Group) Encode(version string) (register.Decision, error) {
	switch {
	case !b.changed:
		return register.Decision{}, nil
	case len(b.keys) == 0 && !b.snapshot.Present:
		return register.Decision{}, nil
	case len(b.keys) == 0:
		return register.Decision{Action: register.Remove}, nil
	}
	all := b.sortedKeys()
	d := register.Decision{Action: register.Put}
	// An unchanged key of a keygroup must keep its version, so it stays in the keygroup.
	if own := all[0]; len(all) == 1 && b.format.isOwn(b, own.name) && (own.hasNewTTL || own.version == "" || !b.isGroup) {
		b.encodeWithoutGroup(&d, own)
		return d, nil
	}
	if err := b.setExpiry(&d, all); err != nil {
		return register.Decision{}, err
	}
	members := make([]member, len(all))
	for i, k := range all {
		if k.version == "" {
			k.version = version
		}
		members[i] = k.member
	}
	if d.Value = encode(b.format.prefix, members); len(d.Value) > MaxBytes {
		return register.Decision{}, ErrTooLarge
	}
	return d, nil
}

// encodeWithoutGroup sets d so that it stores the only key without a keygroup.
func (b *Group) encodeWithoutGroup(d *register.Decision, ownKey key) {
	d.Value = b.format.encodeOwn(ownKey.member)
	switch {
	case ownKey.hasNewTTL:
		d.TTL = ownKey.newTTL
	case !b.isGroup:
		d.KeepTTL, d.Shift, d.Shared = true, b.ownShift, b.isShifted
	case ownKey.expiryOffset == NoExpiry:
		d.TTL = NoExpiry
	default:
		d.KeepTTL, d.Shift, d.Shared = true, -ownKey.expiryOffset, true
	}
}

// setOwnTTL gives a new TTL to the key that was stored without a keygroup, when other keys join it.
// It uses the longest remaining time that a master reported, because a recent extension may have
// reached only that master.
func (b *Group) setOwnTTL(keys []key) error {
	for i, k := range keys {
		switch {
		case b.isGroup || k.hasNewTTL:
		case b.snapshot.TimeLeftUnknown:
			return register.ErrTTLUnknown
		default:
			keys[i].hasNewTTL, keys[i].newTTL = true, b.snapshot.LongestTimeLeft
			if b.snapshot.LongestTimeLeft >= 0 {
				keys[i].newTTL += b.ownShift
			}
		}
	}
	return nil
}

// setExpiry sets the expiry of the cell in d, and the expiry offsets of the keys.
func (b *Group) setExpiry(d *register.Decision, keys []key) error {
	d.Shared = true
	if err := b.setOwnTTL(keys); err != nil {
		return err
	}
	// longest is the longest TTL of the keys with an expiry.
	anyKept, anyWithoutExpiry, longest := false, false, time.Duration(0)
	for _, k := range keys {
		switch {
		case k.hasNewTTL && k.newTTL < 0, !k.hasNewTTL && k.expiryOffset == NoExpiry:
			anyWithoutExpiry = true
		case k.hasNewTTL:
			longest = max(longest, k.newTTL)
		default:
			anyKept = true
			longest = max(longest, b.snapshot.ShortestTimeLeft-k.expiryOffset)
		}
	}
	ttl := cellTTL(longest)
	if anyWithoutExpiry {
		ttl = noExpiryTTL
	}
	switch now := b.snapshot.ShortestTimeLeft; {
	case !anyKept: // nothing depends on the previous expiry
		d.TTL = ttl
	case anyWithoutExpiry && now >= renewalThreshold, !anyWithoutExpiry && now-longest >= minMargin && !isMuchLongerThanNeeded(now, longest):
		d.KeepTTL, ttl = true, now
	default:
		d.KeepTTL, d.Shift = true, ttl-now
	}
	for i, k := range keys {
		switch {
		case k.hasNewTTL && k.newTTL < 0, !k.hasNewTTL && k.expiryOffset == NoExpiry:
			keys[i].expiryOffset = NoExpiry
		case k.hasNewTTL:
			keys[i].expiryOffset = ttl - k.newTTL
		default:
			keys[i].expiryOffset += d.Shift
		}
	}
	return nil
}
