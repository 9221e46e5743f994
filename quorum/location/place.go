package location

import (
	"cmp"
	"slices"
	"time"
)

// Lease is the time for which a move of the locks lasts without a renewal.
const Lease = 5 * time.Second

// Place is a location of the locks. It decides which client holds a lock.
type Place uint8

const (
	// Undecided means that the masters have never decided: the settings of the proxies apply.
	Undecided Place = iota
	// Upstream means that the upstream decides, as it did before there were masters.
	Upstream
	// MovingToMasters means that the locks are being copied from the upstream to the masters.
	MovingToMasters
	// Masters means that the masters decide.
	Masters
	// MovingToUpstream means that the locks are being copied from the masters to the upstream.
	MovingToUpstream
)

// Source returns the location of the locks now, which is also their location if a move is aborted.
// WithDefault must first resolve Undecided. The same applies to Target and MovingPlace.
func (p Place) Source() Place {
	if p == Upstream || p == MovingToMasters {
		return Upstream
	}
	return Masters
}

// Target returns the location of the locks after a move. For locks at rest it is their current
// location.
func (p Place) Target() Place {
	if p == Masters || p == MovingToMasters {
		return Masters
	}
	return Upstream
}

// WithDefault returns the place or, if the masters have never decided, the place by the setting
// move-from-upstream.
func (p Place) WithDefault(fromUpstream bool) Place {
	setting := Masters
	if fromUpstream {
		setting = Upstream
	}
	return cmp.Or(p, setting)
}

// Moves reports whether the locks are being moved, so that no client changes them.
func (p Place) Moves() bool { return p == MovingToMasters || p == MovingToUpstream }

// MovingPlace returns the place for locks that are being moved away from p.
func (p Place) MovingPlace() Place {
	if p == Upstream {
		return MovingToMasters
	}
	return MovingToUpstream
}

var placeNames = [...]string{
	Undecided: "undecided", Upstream: "upstream", MovingToMasters: "to-masters", Masters: "masters",
	MovingToUpstream: "to-upstream",
}

// String returns the name of the place.
func (p Place) String() string { return placeNames[p] }

// Describe returns the name for an operator.
func (p Place) Describe() string {
	if p.Moves() {
		return "moving-" + p.String()
	}
	return p.String()
}

// Parse returns the place with the name that String returns, or Undecided.
func Parse(word string) Place { return Place(max(0, slices.Index(placeNames[:], word))) }
