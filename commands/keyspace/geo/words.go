package geo

import (
	"errors"
	"fmt"
	"strings"

	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/syntax"
)

// ParsePosition reads a longitude and a latitude. The text of an error is the reply.
func ParsePosition(longitude, latitude string) (p Position, err error) {
	var ok1, ok2 bool
	if p.Longitude, ok1 = contents.ParseDouble(longitude); ok1 {
		p.Latitude, ok2 = contents.ParseDouble(latitude)
	}
	switch {
	case !ok1 || !ok2:
		return p, errors.New("ERR value is not a valid float")
	case !p.IsValid():
		return p, fmt.Errorf("ERR invalid longitude,latitude pair %s,%s", sixDigits(p.Longitude), sixDigits(p.Latitude))
	}
	return p, nil
}

// sixDigits is a number as C's %f has it.
func sixDigits(n float64) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%f", n), "+"))
}

// ParseUnit reads a unit and tells how many meters it has.
func ParseUnit(word string) (meters float64, err error) {
	switch syntax.Folded([]byte(word)) {
	case "m":
		return 1, nil
	case "km":
		return 1000, nil
	case "ft":
		return 0.3048, nil
	case "mi":
		return 1609.34, nil
	}
	return 0, errors.New("ERR unsupported unit provided. please use M, KM, FT, MI")
}

// Search is a search, as the words of a command describe it.
type Search struct {
	// Distances, Hashes and Positions are set where they are wanted with the members.
	Distances, Hashes, Positions bool
	// Stores is set where what is found is to be kept under the key Target, with the distances for scores where ScoreDistances is set.
	Stores, ScoreDistances bool
	Target                 string

	area  area
	order order
	count int64 // 0: all
	any   bool
}

// The commands that search.
var (
	radius         = grammar{first: 6, circle: true, stores: true}
	radiusRO       = grammar{first: 6, circle: true}
	radiusMember   = grammar{first: 5, circle: true, member: true, stores: true}
	radiusMemberRO = grammar{first: 5, circle: true, member: true}
	search         = grammar{first: 2}
	searchStore    = grammar{first: 3, target: true}
)

// grammar is how the words of a command are read: its options begin with the word first.
type grammar struct {
	first int
	// circle is set for those that name a circle before their options, around a member or a position.
	circle, member bool
	// stores is set for those with the options STORE and STOREDIST, target for the one whose first key is the target.
	stores, target bool
}

func grammarOf(name string) grammar {
	switch name {
	case "georadius":
		return radius
	case "georadius_ro":
		return radiusRO
	case "georadiusbymember":
		return radiusMember
	case "georadiusbymember_ro":
		return radiusMemberRO
	case "geosearchstore":
		return searchStore
	}
	return search
}

// reading is a search that is being read.
type reading struct {
	Search
	grammar
	set            *contents.SortedSet // nil: there is none
	from, box, arc bool
	fromMember     bool
}

// Parse reads the words of a command that searches a sorted set; nil is one that is not there. The text of an error is the reply.
func Parse(name string, words []string, z *contents.SortedSet) (*Search, error) {
	r := reading{grammar: grammarOf(name), set: z}
	if r.target {
		r.Stores, r.Target = true, words[1]
	}
	if err := r.circleOf(words); err != nil {
		return nil, err
	}
	for options := words[r.first:]; len(options) > 0; {
		taken, err := r.option(options)
		if err != nil {
			return nil, err
		}
		options = options[taken:]
	}
	if err := r.check(words[0]); err != nil {
		return nil, err
	}
	return &r.Search, nil
}

// circleOf reads the circle that stands before the options.
func (r *reading) circleOf(words []string) (err error) {
	switch {
	case !r.circle || r.member && r.set == nil: // of a set that is not there, Redis does not read the circle around a member
		return nil
	case r.member:
		err = r.aroundMember(words[2])
	default:
		r.area.center, err = ParsePosition(words[2], words[3])
	}
	if err != nil {
		return err
	}
	return r.byRadius(words[r.first-2:])
}

func (r *reading) aroundMember(member string) error {
	score, ok := r.set.Score(member)
	if !ok {
		return errors.New("ERR could not decode requested zset member")
	}
	r.area.center = Of(score)
	return nil
}

func (r *reading) byRadius(words []string) (err error) {
	size, ok := contents.ParseDouble(words[0])
	switch {
	case !ok:
		return errors.New("ERR need numeric radius")
	case size < 0:
		return errors.New("ERR radius cannot be negative")
	}
	r.area.radius = size
	r.area.unit, err = ParseUnit(words[1])
	return err
}

func (r *reading) byBox(words []string) (err error) {
	var ok bool
	if r.area.width, ok = contents.ParseDouble(words[0]); !ok {
		return errors.New("ERR need numeric width")
	}
	if r.area.height, ok = contents.ParseDouble(words[1]); !ok {
		return errors.New("ERR need numeric height")
	}
	if r.area.width < 0 || r.area.height < 0 {
		return errors.New("ERR height or width cannot be negative")
	}
	r.area.unit, err = ParseUnit(words[2])
	return err
}

// option reads the first of some options, and tells how many words it has.
func (r *reading) option(words []string) (taken int, err error) {
	name := syntax.Folded([]byte(words[0]))
	switch name {
	case "withdist":
		r.Distances = true
	case "withhash":
		r.Hashes = true
	case "withcoord":
		r.Positions = true
	case "any":
		r.any = true
	case "asc":
		r.order = nearest
	case "desc":
		r.order = farthest
	default:
		return r.longOption(name, words)
	}
	return 1, nil
}

// longOption is option for those that are about other words, or that not all commands have.
func (r *reading) longOption(name string, words []string) (taken int, err error) {
	values := words[1:]
	searches := !r.circle
	switch {
	case name == "count" && len(values) > 0:
		return 2, r.limit(values[0])
	case (name == "store" || name == "storedist") && len(values) > 0 && r.stores:
		r.Stores, r.Target, r.ScoreDistances = true, values[0], name == "storedist"
		return 2, nil
	case name == "storedist" && r.target:
		r.ScoreDistances = true
		return 1, nil
	case name == "frommember" && len(values) > 0 && searches && !r.from:
		r.fromMember = true
		if r.set == nil {
			return 2, nil
		}
		return 2, r.aroundMember(values[0])
	case name == "fromlonlat" && len(values) > 1 && searches && !r.fromMember:
		r.from = true
		r.area.center, err = ParsePosition(values[0], values[1])
		return 3, err
	case name == "byradius" && len(values) > 1 && searches && !r.box:
		r.arc = true
		return 3, r.byRadius(values)
	case name == "bybox" && len(values) > 2 && searches && !r.arc:
		r.box, r.area.isBox = true, true
		return 4, r.byBox(values)
	}
	return 0, errors.New(syntax.ErrSyntax)
}

func (r *reading) limit(word string) error {
	var ok bool
	switch r.count, ok = syntax.Int(word); {
	case !ok:
		return errors.New(syntax.ErrNotInteger)
	case r.count <= 0:
		return errors.New("ERR COUNT must be > 0")
	}
	return nil
}

// check tells what is missing, or does not go together.
func (r *reading) check(name string) error {
	switch {
	case r.Stores && (r.Distances || r.Hashes || r.Positions):
		what := "STORE option in GEORADIUS"
		if r.target {
			what = "GEOSEARCHSTORE"
		}
		return fmt.Errorf("ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options", what)
	case !r.circle && !r.from && !r.fromMember:
		return fmt.Errorf("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %s", name)
	case !r.circle && !r.arc && !r.box:
		return fmt.Errorf("ERR exactly one of BYRADIUS and BYBOX can be specified for %s", name)
	case r.any && r.count == 0:
		return errors.New("ERR the ANY argument requires COUNT argument")
	}
	return nil
}
