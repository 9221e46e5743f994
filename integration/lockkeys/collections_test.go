//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/randomcommands"
	"redlock-proxy/internal/redistest"
)

const (
	// collectionsEnv sets how many commands TestCollectionsAsOneRedis compares.
	collectionsEnv = "REDLOCK_COLLECTIONS"
	// defaultCollections is the default; it takes some seconds on two busy cores.
	defaultCollections = 3000
)

// severally runs the commands in its arguments. The number of its words precedes each command.
const severally = `local out, i = {}, 1
while i <= #ARGV do
  local words = {}
  for j = 1, tonumber(ARGV[i]) do words[j] = ARGV[i + j] end
  i = i + #words + 1
  out[#out + 1] = redis.pcall(unpack(words))
end
return out`

// collectionKeys returns lock keys. Most commands change one of them.
func collectionKeys() []string { return []string{"lock:a", "lock:{b}:\xff", "lock:c"} }

// comparison holds connections to proxies of the same masters, and one to a single Redis.
type comparison struct {
	proxies []*peer
	single  *peer
	keys    []string
	random  *rand.Rand
	history []string
	refused int
	// faulty is set if masters fail during the conversation. After NOQUORUM the command may have
	// been executed, or may be executed later: the conversation continues with new keys.
	faulty  bool
	unknown int
	// mayRefuse reports whether the proxy may refuse a command on several keys; nil: it may refuse
	// any.
	mayRefuse func(words []string) bool
}

func startComparison(t *testing.T, resp string, random *rand.Rand, single string, proxies ...string) *comparison {
	t.Helper()
	s := &comparison{random: random, keys: collectionKeys()}
	for _, addr := range append(slices.Clone(proxies), single) {
		p, err := dialPeer(addr)
		kit.Must(t, err)
		t.Cleanup(func() { _ = p.conn.Close() })
		ask(t, p, "HELLO", resp)
		s.proxies = append(s.proxies, p)
	}
	s.single, s.proxies = s.proxies[len(proxies)], s.proxies[:len(proxies)]
	return s
}

func ask(t *testing.T, p *peer, words ...string) answer {
	t.Helper()
	kit.Must(t, p.send(words))
	got, err := p.receive()
	kit.Must(t, err)
	return got
}

// same sends commands to one of the proxies and to the single Redis. It returns false if the proxy
// refused to change several keys together; then both start again without keys.
func (s *comparison) same(t *testing.T, group ...[]string) bool {
	t.Helper()
	p := s.proxies[s.random.IntN(len(s.proxies))]
	for _, words := range group {
		s.history = append(s.history, fmt.Sprintf("%q", words))
		ours, theirs := ask(t, p, words...), ask(t, s.single, words...)
		if strings.HasPrefix(ours.raw, "-ERR lock keys '") && strings.Contains(ours.raw,
			" cannot be changed together: ") && (s.mayRefuse == nil || s.mayRefuse(words)) {
			s.refused++
			s.afresh(t)
			return false
		}
		if s.faulty && strings.Contains(ours.raw, "-NOQUORUM ") {
			s.unknown++
			if group[0][0] == "MULTI" && words[0] != "EXEC" {
				ask(t, p, "DISCARD")
				ask(t, s.single, "DISCARD")
			}
			s.otherKeys(t)
			return false
		}
		if group[0][0] == "MULTI" && isError(ours.raw) && isError(theirs.raw) {
			continue // commands without a lock key are refused with another text
		}
		unordered := randomcommands.IsUnordered(words) || strings.EqualFold(words[0], "EVAL") ||
			strings.EqualFold(words[0], "EXEC")
		if ours.raw != theirs.raw && !(unordered && shuffled(ours.value) == shuffled(theirs.value)) {
			t.Fatalf("after\n%s\n got  %q\n want %q", strings.Join(s.history[max(0, len(s.history)-30):], "\n"),
				ours.raw, theirs.raw)
		}
	}
	return true
}

func isError(raw string) bool { return strings.HasPrefix(raw, "-") }

// shuffled returns a reply without the order of its items.
func shuffled(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprintf("%T %v", value, value)
	}
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = shuffled(e)
	}
	slices.Sort(parts)
	return fmt.Sprint(parts)
}

// afresh removes all keys.
func (s *comparison) afresh(t *testing.T) {
	t.Helper()
	s.forget(t)
	for _, key := range s.keys {
		if removed := ask(t, s.proxies[0], "DEL", key); s.faulty && strings.HasPrefix(removed.raw, "-NOQUORUM ") {
			s.otherKeys(t)
			return
		}
	}
}

// otherKeys starts again with new keys.
func (s *comparison) otherKeys(t *testing.T) {
	t.Helper()
	s.forget(t)
	for i, key := range s.keys {
		s.keys[i] = fmt.Sprintf("%s'", key)
	}
}

// forget empties the single Redis.
func (s *comparison) forget(t *testing.T) {
	t.Helper()
	ask(t, s.single, "FLUSHALL")
	s.history = nil
}

// talk sends the given number of commands, a tenth of them in transactions and a tenth in scripts.
func (s *comparison) talk(t *testing.T, commands int) {
	t.Helper()
	m := randomcommands.Maker{Rand: s.random, Exact: true}
	for sent := 0; sent < commands; {
		themes := randomcommands.Themes()
		shapes := slices.DeleteFunc(themes[s.random.IntN(len(themes))], randomcommands.Countless)
		s.afresh(t)
		for range 40 {
			m.Keys = s.keys
			kind := s.random.IntN(10)
			if kind < 7 && s.random.IntN(3) > 0 {
				m.Keys = m.Keys[:1] // most commands change one key at a time
			}
			group := [][]string{m.Next(shapes)}
			switch {
			case kind < 5 && randomcommands.Waits(group[0]), kind == 5:
				group = s.transaction(m, shapes)
			case kind == 6:
				group = [][]string{s.script(m, shapes)}
			}
			if randomcommands.Waits(group[0]) {
				continue
			}
			sent += len(group)
			if !s.same(t, group...) {
				break
			}
		}
	}
}

func (s *comparison) transaction(m randomcommands.Maker, shapes []string) [][]string {
	group := [][]string{{"MULTI"}}
	for range 1 + s.random.IntN(4) {
		group = append(group, m.Next(shapes))
	}
	return append(group, []string{"EXEC"})
}

func (s *comparison) script(m randomcommands.Maker, shapes []string) []string {
	body := severally
	if s.random.IntN(3) == 0 {
		body = "redis.setresp(3)\n" + severally
	}
	words := append([]string{"EVAL", body, strconv.Itoa(len(m.Keys))}, m.Keys...)
	for range 1 + s.random.IntN(4) {
		if call := m.Next(shapes); !randomcommands.Waits(call) { // Redis 7.0 refuses blocking commands in scripts
			words = append(append(words, strconv.Itoa(len(call))), call...)
		}
	}
	return words
}

// TestCollectionsAsOneRedis checks that random commands on hashes, lists, sets and sorted sets in
// lock keys get byte for byte the replies of a single Redis. They run alone, in transactions and in
// scripts, through two proxies alternately. Commands on several keys may be refused.
func TestCollectionsAsOneRedis(t *testing.T) {
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)),
		kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	masters, upstream, single := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t), kit.StartReference(t)
	args := kit.LockKeyArgs(upstream)
	one, other := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)
	compareInBothProtocols(t, commands, seed, false, single.Addr(), one.Addr(), other.Addr())
}

// TestCollectionsWhileMastersAreKilled repeats TestCollectionsAsOneRedis while two of five masters
// at a time are killed and restart with their data. The replies are the same, except for some
// NOQUORUM, after which the values of the keys are unknown.
func TestCollectionsWhileMastersAreKilled(t *testing.T) {
	redistest.SkipShort(t)
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)),
		kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	f, single := startLockKeyFleet(t, 2), kit.StartReference(t)
	disturber := faults.StartDisturber(f, seed, killed())
	compareInBothProtocols(t, commands, seed, true, single.Addr(), f.Addrs()...)
	done, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", done)
	kit.Must(t, err)
}

// compareInBothProtocols compares the given number of commands in each protocol.
func compareInBothProtocols(t *testing.T, commands int, seed uint64, faulty bool, single string, proxies ...string) {
	t.Helper()
	for _, resp := range []string{"2", "3"} {
		s := startComparison(t, resp, rand.New(rand.NewPCG(seed, uint64(resp[0]))), single, proxies...)
		s.faulty = faulty
		for i := range s.keys {
			// The keys of the other protocol may still change, by commands that got NOQUORUM.
			s.keys[i] += resp
		}
		s.talk(t, commands/2)
		t.Logf("RESP%s: %d refused, %d unknown", resp, s.refused, s.unknown)
		if s.unknown > commands/4 {
			t.Errorf("%d of %d commands are answered NOQUORUM: too few are compared", s.unknown, commands/2)
		}
	}
}
