package place

import (
	"slices"
	"time"
)

// Lease is for how long a moving place lasts that nobody was seen to renew.
const Lease = 5 * time.Second

// Place is where the locks are: what decides who holds one.
type Place uint8

const (
	// Undecided: the masters were never asked; the proxies' settings say it.
	Undecided Place = iota
	// Upstream decides, as it did before there were masters.
	Upstream
	// ToMasters is while the locks are copied from the upstream to the masters: they are at the
	// upstream, and nobody changes them.
	ToMasters
	// Masters decide.
	Masters
	// ToUpstream is while the locks are copied from the masters to the upstream: they are at the
	// masters, and nobody changes them.
	ToUpstream
)

// Source is where the locks are, and stay if they are not moved after all.
func (p Place) Source() Place {
	switch p {
	case ToMasters, Upstream:
		return Upstream
	default:
		return Masters
	}
}

// Target is where they are going to be, or stay.
func (p Place) Target() Place {
	switch p {
	case ToMasters, Masters:
		return Masters
	default:
		return Upstream
	}
}

// OrBySetting returns the place, or, if none was decided, the one of the setting
// move-from-upstream.
func (p Place) OrBySetting(fromUpstream bool) Place {
	switch {
	case p != Undecided:
		return p
	case fromUpstream:
		return Upstream
	default:
		return Masters
	}
}

// Moves reports whether they are being moved: then no client changes any.
func (p Place) Moves() bool { return p == ToMasters || p == ToUpstream }

// Away is the place through which the locks leave it.
func (p Place) Away() Place {
	if p == Upstream {
		return ToMasters
	}
	return ToUpstream
}

var words = [...]string{Undecided: "undecided", Upstream: "upstream", ToMasters: "to-masters", Masters: "masters", ToUpstream: "to-upstream"}

// String is a word for it.
func (p Place) String() string { return words[p] }

// Shown is the word for an operator.
func (p Place) Shown() string {
	if p.Moves() {
		return "moving-" + p.String()
	}
	return p.String()
}

// Parse reads what String wrote. Another word is Undecided.
func Parse(word string) Place { return Place(max(0, slices.Index(words[:], word))) }
