package keyspace

import (
	"slices"

	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/keyspace/geo"
	"redlock-proxy/commands/syntax"
)

// geoadd is GEOADD key [NX|XX] [CH] longitude latitude member ….
func (c call) geoadd() (Reply, error) {
	a, words := adding{}, c.words[2:]
	for len(words) > 0 && slices.Contains([]string{"nx", "xx", "ch"}, syntax.Folded([]byte(words[0]))) {
		a.takes(syntax.Folded([]byte(words[0])))
		words = words[1:]
	}
	if len(words) == 0 || len(words)%3 > 0 || a.nx && a.xx {
		return Fail(syntax.ErrSyntax), nil
	}
	for element := range slices.Chunk(words, 3) {
		position, err := geo.ParsePosition(element[0], element[1])
		if err != nil {
			return Fail(err.Error()), nil
		}
		a.elements = append(a.elements, contents.Scored{Member: element[2], Score: position.Score()})
	}
	return c.adds(a), nil
}

// geodist is GEODIST key member member [unit].
func (c call) geodist() (Reply, error) {
	meters := 1.0
	switch len(c.words) {
	case 4:
	case 5:
		var err error
		if meters, err = geo.ParseUnit(c.words[4]); err != nil {
			return Fail(err.Error()), nil
		}
	default:
		return Fail(syntax.ErrSyntax), nil
	}
	_, z, failed := c.sorted()
	if failed != nil {
		return *failed, nil
	}
	from, ok1 := z.Score(c.words[2])
	to, ok2 := z.Score(c.words[3])
	if !ok1 || !ok2 {
		return Reply{}, nil
	}
	return Text(geo.FormatDistance(geo.Distance(geo.Of(from), geo.Of(to)) / meters)), nil
}

// geopos is GEOPOS and GEOHASH key [member …].
func (c call) geopos() (Reply, error) {
	_, z, failed := c.sorted()
	if failed != nil {
		return *failed, nil
	}
	all := List()
	for _, member := range c.words[2:] {
		score, ok := z.Score(member)
		reply := Reply{}
		switch {
		case ok && c.name == "geohash":
			reply = Text(geo.Of(score).Hash())
		case ok:
			reply = positionReply(geo.Of(score))
		case c.name == "geopos":
			reply.Kind = NilArray
		}
		all.Elems = append(all.Elems, reply)
	}
	return all, nil
}

func positionReply(p geo.Position) Reply { return List(Decimal(p.Longitude), Decimal(p.Latitude)) }

// geosearch is GEOSEARCH, GEORADIUS and GEORADIUSBYMEMBER with a key first, and GEOSEARCHSTORE with its target before that.
func (c call) geosearch() (Reply, error) {
	source := c.words[1]
	if c.name == "geosearchstore" {
		source = c.words[2]
	}
	z, failed := held[*contents.SortedSet](c.ask(source))
	if failed != nil {
		return *failed, nil
	}
	search, err := geo.Parse(c.name, c.words, z)
	if err != nil {
		return Fail(err.Error()), nil
	}
	var found []geo.Found
	if z != nil {
		found = search.In(z)
	}
	if search.Stores {
		c.use(search.Target).store(scoresOf(found, search.ScoreDistances))
		return Number(int64(len(found))), nil
	}
	all := List()
	for _, f := range found {
		all.Elems = append(all.Elems, foundReply(search, f))
	}
	return all, nil
}

func scoresOf(found []geo.Found, distances bool) *contents.SortedSet {
	z := contents.NewSortedSet()
	for _, f := range found {
		if distances {
			f.Score = f.Distance
		}
		z.Set(f.Member, f.Score)
	}
	return z
}

// foundReply is a member, with what is wanted of it.
func foundReply(search *geo.Search, f geo.Found) Reply {
	member := Text(f.Member)
	if !search.Distances && !search.Hashes && !search.Positions {
		return member
	}
	parts := List(member)
	if search.Distances {
		parts.Elems = append(parts.Elems, Text(geo.FormatDistance(f.Distance)))
	}
	if search.Hashes {
		parts.Elems = append(parts.Elems, Number(f.Hash()))
	}
	if search.Positions {
		parts.Elems = append(parts.Elems, positionReply(f.Position))
	}
	return parts
}
