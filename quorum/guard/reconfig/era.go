package reconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/quorum/location"
)

// Era describes a set of masters and the location of the locks, and numbers them. The zero Era is
// the first era, whose masters are unknown.
type Era struct {
	// Number counts the eras.
	Number int
	// Masters is the number of masters, Hash a hash of their names. Both are unset in the first
	// era.
	Masters int
	Hash    string
	// Place is the location of the locks.
	Place location.Place
}

// Location returns the location of the locks in the era.
func (e Era) Location() location.EraPlace { return location.EraPlace{Place: e.Place, Era: e.Number} }

const firstEraText = "0"

// String returns the era as it is stored in a marker.
func (e Era) String() string {
	if e.Number == 0 {
		return firstEraText
	}
	return fmt.Sprintf("%d.%d.%s", e.Number, e.Masters, e.Hash+locationSuffix(e.Place))
}

// locationPrefix precedes the location at the end of an era's hash, and of the names in a seal. A
// proxy of protocol 1 does not know the masters of such an era, so it does not change them.
const locationPrefix = "@"

// locationSuffix returns a location as it is appended to an era or a seal; empty if undecided.
func locationSuffix(p location.Place) string {
	if p == location.Undecided {
		return ""
	}
	return locationPrefix + p.String()
}

// ParseEra parses the result of Era.String.
func ParseEra(text string) (e Era, ok bool) {
	if text == firstEraText {
		return Era{}, true
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Era{}, false
	}
	e.Number, _ = strconv.Atoi(parts[0])
	e.Masters, _ = strconv.Atoi(parts[1])
	hash, place, _ := strings.Cut(parts[2], locationPrefix)
	e.Hash = hash
	e.Place = location.Parse(place)
	return e, e.Number > 0 && e.Masters > 0 && e.Hash != "" && e.String() == text
}

// Hash returns a hash of the names that does not depend on their order.
func Hash(names []string) string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return hex.EncodeToString(sum[:8])
}

// HasMasters reports whether the era's masters have these names. For the first era it is always
// true, because its names are unknown.
func (e Era) HasMasters(names []string) bool {
	return e.Number == 0 || e.Masters == len(names) && e.Hash == Hash(names)
}

// Seal ends the era of a master, and names the successor. It is the value that masters accept in a
// ballot. Until a majority has the same seal, a seal of a higher ballot may replace it.
type Seal struct {
	// Ballot is the ballot in which the seal was accepted.
	Ballot string
	Change
}

// Change describes the transition to the next era.
type Change struct {
	// PreviousMasterCount is the number of masters of the era that ends.
	PreviousMasterCount int
	// Names holds the names of the masters that follow.
	Names []string
	// Place is the new location of the locks. If it differs from the present one, the masters stay
	// the same.
	Place location.Place
}

// IsNone reports whether there is no change.
func (c Change) IsNone() bool { return len(c.Names) == 0 }

// NextEra returns the era that follows e by the change.
func (c Change) NextEra(e Era) Era {
	return Era{Number: e.Number + 1, Masters: len(c.Names), Hash: Hash(c.Names), Place: c.Place}
}

// KeepsMasters reports whether the masters of an era stay the same: only the location of the locks
// is changed, or is decided once more.
func (c Change) KeepsMasters(e Era) bool { return c.Place != e.Place || c.Place.Moves() }

// Equals reports whether both changes lead to the same masters and the same location.
func (c Change) Equals(other Change) bool {
	return c.Place == other.Place && c.PreviousMasterCount == other.PreviousMasterCount &&
		len(c.Names) == len(other.Names) && Hash(c.Names) == Hash(other.Names)
}

const noSealText = "-"

// String returns the seal as it is stored in a marker, without spaces.
func (s Seal) String() string {
	if s.IsNone() {
		return noSealText
	}
	names := make([]string, len(s.Names), len(s.Names)+1)
	for i, name := range s.Names {
		names[i] = url.QueryEscape(name)
	}
	if s.Place != location.Undecided {
		names = append(names, url.QueryEscape(locationSuffix(s.Place)))
	}
	return fmt.Sprintf("%s;%d;%s", s.Ballot, s.PreviousMasterCount, strings.Join(names, ","))
}

// ParseSeal parses the result of Seal.String.
func ParseSeal(text string) (s Seal, ok bool) {
	if text == noSealText {
		return Seal{}, true
	}
	parts := strings.Split(text, ";")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Seal{}, false
	}
	s.Ballot = parts[0]
	s.PreviousMasterCount, _ = strconv.Atoi(parts[1])
	for escaped := range strings.SplitSeq(parts[2], ",") {
		name, err := url.QueryUnescape(escaped)
		if err != nil {
			return Seal{}, false
		}
		if place, found := strings.CutPrefix(name, locationPrefix); found {
			s.Place = location.Parse(place)
		} else {
			s.Names = append(s.Names, name)
		}
	}
	return s, s.PreviousMasterCount > 0 && s.String() == text
}
