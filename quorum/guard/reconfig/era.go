package reconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/quorum/place"
)

// Era is a set of masters, with where the locks are, in the order in which sets follow each other.
// The zero Era is the first set, of which nothing more is known.
type Era struct {
	// Number counts the sets.
	Number int
	// Masters is how many there are, Hash of their names. They are zero in the first set.
	Masters int
	Hash    string
	// Place is where the locks are.
	Place place.Place
}

// At is where the locks are in it.
func (e Era) At() place.At { return place.At{Place: e.Place, Era: e.Number} }

// noEra is the zero Era as text.
const noEra = "0"

// String is the era as it is in a marker.
func (e Era) String() string {
	if e.Number == 0 {
		return noEra
	}
	return fmt.Sprintf("%d.%d.%s", e.Number, e.Masters, e.Hash+placed(e.Place))
}

// atPlace is before the place at the end of the hash of an era, and of the names in a seal. A proxy
// of protocol 1 takes that for other masters than its own: it does nothing with these, and changes
// nothing on them.
const atPlace = "@"

// placed is a place as it is written behind what it is of; nothing where it is undecided.
func placed(p place.Place) string {
	if p == place.Undecided {
		return ""
	}
	return atPlace + p.String()
}

// ParseEra reads what String wrote.
func ParseEra(text string) (e Era, ok bool) {
	if text == noEra {
		return Era{}, true
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Era{}, false
	}
	e.Number, _ = strconv.Atoi(parts[0])
	e.Masters, _ = strconv.Atoi(parts[1])
	hash, word, _ := strings.Cut(parts[2], atPlace)
	e.Hash = hash
	e.Place = place.Parse(word)
	return e, e.Number > 0 && e.Masters > 0 && e.Hash != "" && e.String() == text
}

// Hash is the same for the same names in any order.
func Hash(names []string) string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return hex.EncodeToString(sum[:8])
}

// Is reports whether masters with these names are the era's, or may be: of the first one nobody
// knows.
func (e Era) Is(names []string) bool {
	return e.Number == 0 || e.Masters == len(names) && e.Hash == Hash(names)
}

// Seal ends the era of a master, and has what follows. It is what the masters accept in a
// ballot, so it may be replaced by one of a higher ballot until a majority has the same.
type Seal struct {
	// Ballot is the one in which it was accepted.
	Ballot string
	Change
}

// Change is what an era is followed by.
type Change struct {
	// Before is the number of masters of the era that is over.
	Before int
	// Names are those of the masters that follow.
	Names []string
	// Place is where the locks are then. Where it is another one than before the masters are the
	// same.
	Place place.Place
}

// IsNone reports whether it is no change.
func (c Change) IsNone() bool { return len(c.Names) == 0 }

// After is the era that follows another by the change.
func (c Change) After(e Era) Era {
	return Era{Number: e.Number + 1, Masters: len(c.Names), Hash: Hash(c.Names), Place: c.Place}
}

// Keeps reports whether the masters of an era stay the same: only where the locks are is changed,
// or is decided once more.
func (c Change) Keeps(e Era) bool { return c.Place != e.Place || c.Place.Moves() }

// Is reports whether both lead to the same masters, and to the same place.
func (c Change) Is(other Change) bool {
	return c.Place == other.Place && c.Before == other.Before && len(c.Names) == len(other.Names) && Hash(c.Names) == Hash(other.Names)
}

// noSeal is the text of a seal that is none.
const noSeal = "-"

// String is the seal as it is in a marker, without spaces.
func (s Seal) String() string {
	if s.IsNone() {
		return noSeal
	}
	names := make([]string, len(s.Names), len(s.Names)+1)
	for i, name := range s.Names {
		names[i] = url.QueryEscape(name)
	}
	if s.Place != place.Undecided {
		names = append(names, url.QueryEscape(placed(s.Place)))
	}
	return fmt.Sprintf("%s;%d;%s", s.Ballot, s.Before, strings.Join(names, ","))
}

// ParseSeal reads what String wrote.
func ParseSeal(text string) (s Seal, ok bool) {
	if text == noSeal {
		return Seal{}, true
	}
	parts := strings.Split(text, ";")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Seal{}, false
	}
	s.Ballot = parts[0]
	s.Before, _ = strconv.Atoi(parts[1])
	for escaped := range strings.SplitSeq(parts[2], ",") {
		name, err := url.QueryUnescape(escaped)
		if err != nil {
			return Seal{}, false
		}
		if word, is := strings.CutPrefix(name, atPlace); is {
			s.Place = place.Parse(word)
		} else {
			s.Names = append(s.Names, name)
		}
	}
	return s, s.Before > 0 && s.String() == text
}
