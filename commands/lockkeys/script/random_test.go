package script

import (
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// TestRandom checks that math.random returns every number of an interval, and no other number.
// After the same seed, which is 0 at first, it returns the same numbers.
func TestRandom(t *testing.T) {
	const body = `local function draw(...) local seen, n = {}, 0 for i = 1, 200 do
			local x = math.random(...) seen[x] = true if x % 1 ~= 0 or x < -1 or x > 4 then error(x) end end
			for k in pairs(seen) do n = n + 1 end return n end
		local first = math.random(2 ^ 31 - 1)
		local counts = {draw(4), draw(0, 1), draw(-1, 4), draw(3, 3)}
		for i = 1, 200 do local x = math.random() if x < 0 or x >= 1 then error(x) end end
		math.randomseed(5) local five = math.random(1e9)
		math.randomseed(0) local again = math.random(2 ^ 31 - 1) == first
		math.randomseed(5) return {counts, again, math.random(1e9) == five}`
	want := keyspace.ArrayReply(keyspace.ArrayReply(keyspace.IntReply(4), keyspace.IntReply(2), keyspace.IntReply(6),
		keyspace.IntReply(1)),
		keyspace.IntReply(1), keyspace.IntReply(1))
	if got := runInProxy(t, body, noCall).InRESP2(); !sameReply(got, want) {
		t.Errorf("%+v", got)
	}
}
