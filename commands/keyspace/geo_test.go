package keyspace_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"redlock-proxy/commands/keyspace"
)

// crowd is a conversation about many positions, of which some are the same or as far away.
type crowd struct{ *rand.Rand }

func (c crowd) pick(words ...string) string { return words[c.IntN(len(words))] }

func (c crowd) number(size float64) string {
	return strconv.FormatFloat((c.Float64()*2-1)*size, 'f', c.IntN(18), 64)
}

func (c crowd) add(members int, spread float64) []string {
	words := []string{"geoadd", "a"}
	longitude, latitude := (c.Float64()*2-1)*(180-spread), (c.Float64()*2-1)*max(0, 85-spread)
	for i := range members {
		at := [2]string{fmt.Sprint(longitude + (c.Float64()*2-1)*spread), fmt.Sprint(latitude + (c.Float64()*2-1)*min(spread, 85))}
		if c.IntN(3) == 0 {
			at = [2]string{fmt.Sprint(math.Round(longitude)), fmt.Sprint(math.Round(latitude))}
		}
		words = append(words, at[0], at[1], "m"+strconv.Itoa(i))
	}
	return words
}

// search is one around the members, or anywhere.
func (c crowd) search(members int, spread float64) []string {
	stores := c.IntN(3) == 0
	words := []string{"geosearch", "a"}
	if stores {
		words = []string{"geosearchstore", "b", "a"}
	}
	if c.IntN(3) > 0 {
		words = append(words, "frommember", "m"+strconv.Itoa(c.IntN(members)))
	} else {
		words = append(words, "fromlonlat", c.number(180), c.number(85))
	}
	size := func() string { return strconv.FormatFloat(c.ExpFloat64()*spread*100, 'g', -1, 64) }
	if unit := c.pick("km", "mi"); c.IntN(2) == 0 {
		words = append(words, "byradius", size(), unit)
	} else {
		words = append(words, "bybox", size(), size(), unit)
	}
	words = append(words, c.pick("asc", "desc"))
	if c.IntN(2) == 0 {
		words = append(words, "count", strconv.Itoa(1+c.IntN(members)))
		if c.IntN(3) == 0 {
			words = append(words, "any")
		}
	}
	if stores {
		return append(words, "storedist")
	}
	return append(words, "withdist", "withhash", "withcoord")
}

// Of many members, those are found that Redis finds, in its order, with the same digits.
func TestManyPositionsAreLikeRedis(t *testing.T) {
	server := startRedis(t)
	distances, other := 0, 0
	for seed := range uint64(60) {
		c := crowd{rand.New(rand.NewPCG(11, seed))}
		proto := 2 + int(seed%2)
		server.do(t, "FLUSHALL")
		server.do(t, "HELLO", strconv.Itoa(proto))
		w, members, spread := world{}, 1+c.IntN(300), []float64{0.0001, 0.1, 5, 60, 180}[c.IntN(5)]
		say := func(words ...string) {
			compare(t, w, server, words, proto, []string{fmt.Sprintf("seed %d: %d members within %v degrees", seed, members, spread)})
		}
		say(c.add(members, spread)...)
		say("zrange", "a", "0", "-1", "withscores")
		for range 30 {
			words := c.search(members, spread)
			say(words...)
			if words[1] == "b" {
				n, off := sameDistances(t, w.do(t, "zrange", "b", "0", "-1", "withscores"), server.do(t, "zrange", "b", "0", "-1", "withscores"))
				distances, other = distances+n, other+off
			}
			a, b := "m"+strconv.Itoa(c.IntN(members)), "m"+strconv.Itoa(c.IntN(members))
			say("geodist", "a", a, b, c.pick("m", "km", "ft", "mi"))
			say("geohash", "a", a, b)
			say("geopos", "a", a, b)
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	t.Logf("of %d distances that were kept, %d had another last digit", distances, other)
}

// sameDistances compares members whose scores are distances, and counts those that are not quite the same: what C's sine is in its last bit
// depends on its library and on the processor.
func sameDistances(t *testing.T, ours, theirs keyspace.Reply) (all, other int) {
	t.Helper()
	a, b := scoresIn(ours.Plain()), scoresIn(theirs.Plain())
	if len(a) != len(b) {
		t.Fatalf("%v, redis %v", a, b)
	}
	for member, score := range b {
		if math.Abs(a[member]-score) > score*1e-15 {
			t.Errorf("%s: %v, redis %v", member, a[member], score)
		}
		if a[member] != score {
			other++
		}
	}
	return len(b), other
}

// scoresIn are those of members, which may be in pairs.
func scoresIn(r keyspace.Reply) map[string]float64 {
	var flat []keyspace.Reply
	for _, e := range r.Elems {
		if e.Kind == keyspace.Array {
			flat = append(flat, e.Elems...)
		} else {
			flat = append(flat, e)
		}
	}
	scores := map[string]float64{}
	for pair := range slices.Chunk(flat, 2) {
		scores[pair[0].Str], _ = strconv.ParseFloat(pair[1].Str, 64)
	}
	return scores
}

// A sorted set may have scores that no position has.
func TestScoresOfNoPositionAreLikeRedis(t *testing.T) {
	server := startRedis(t)
	scores := []string{"0", "-1", "-1.5", "1.5", "4503599627370495", "4503599627370496", "9007199254740992", "9223372036854775808", "-9223372036854775808", "-1e19", "18446744073709551615", "1e20", "inf", "-inf", "1e300"}
	for proto := 2; proto <= 3; proto++ {
		server.do(t, "FLUSHALL")
		server.do(t, "HELLO", strconv.Itoa(proto))
		w := world{}
		say := func(words ...string) { t.Helper(); compare(t, w, server, words, proto, nil) }
		for _, score := range scores {
			say("zadd", "a", score, score)
		}
		for _, score := range scores {
			say("geopos", "a", score)
			say("geohash", "a", score)
			say("geodist", "a", "0", score)
			for _, radius := range []string{"0", "10", "3000", "9000", "30000"} {
				say("georadiusbymember", "a", score, radius, "km", "withdist", "withhash", "withcoord")
				say("geosearch", "a", "frommember", score, "bybox", radius, "4000", "km", "desc")
			}
		}
	}
}
