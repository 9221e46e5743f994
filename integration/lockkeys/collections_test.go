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
	// defaultCollections take some seconds on two busy cores.
	defaultCollections = 3000
)

// severally runs commands that it is given as arguments, each after the number of its words.
const severally = `local out, i = {}, 1
while i <= #ARGV do
  local words = {}
  for j = 1, tonumber(ARGV[i]) do words[j] = ARGV[i + j] end
  i = i + #words + 1
  out[#out + 1] = redis.pcall(unpack(words))
end
return out`

// collectionKeys are lock keys, of which commands change one at a time, mostly.
func collectionKeys() []string { return []string{"lock:a", "lock:{b}:\xff", "lock:c"} }

// several are connections to proxies of the same masters, and one to a single Redis, which is told
// the same.
type several struct {
	proxies []*peer
	single  *peer
	keys    []string
	random  *rand.Rand
	history []string
	refused int
	// faulty: masters fail meanwhile, and NOQUORUM says that it is not known whether a command is
	// done. Then new keys are talked about: it may be done later.
	faulty  bool
	unknown int
	// mayRefuse tells of which commands that may be; nil: of all.
	mayRefuse func(words []string) bool
}

func startSeveral(t *testing.T, resp string, random *rand.Rand, single string, proxies ...string) *several {
	t.Helper()
	s := &several{random: random, keys: collectionKeys()}
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

// same sends commands to one of the proxies and to the Redis. It is false where the proxy refused
// to change several keys at once; then both begin again.
func (s *several) same(t *testing.T, group ...[]string) bool {
	t.Helper()
	p := s.proxies[s.random.IntN(len(s.proxies))]
	for _, words := range group {
		s.history = append(s.history, fmt.Sprintf("%q", words))
		ours, theirs := ask(t, p, words...), ask(t, s.single, words...)
		if strings.HasPrefix(ours.raw, "-ERR lock keys '") && strings.Contains(ours.raw, " cannot be changed together: ") && (s.mayRefuse == nil || s.mayRefuse(words)) {
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
			continue // what has no lock key is refused in other words
		}
		unordered := randomcommands.IsUnordered(words) || strings.EqualFold(words[0], "EVAL") || strings.EqualFold(words[0], "EXEC")
		if ours.raw != theirs.raw && !(unordered && shuffled(ours.value) == shuffled(theirs.value)) {
			t.Fatalf("after\n%s\n got  %q\n want %q", strings.Join(s.history[max(0, len(s.history)-30):], "\n"), ours.raw, theirs.raw)
		}
	}
	return true
}

func isError(raw string) bool { return strings.HasPrefix(raw, "-") }

// shuffled is a reply without the order of what is in it.
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
func (s *several) afresh(t *testing.T) {
	t.Helper()
	s.forget(t)
	for _, key := range s.keys {
		if removed := ask(t, s.proxies[0], "DEL", key); s.faulty && strings.HasPrefix(removed.raw, "-NOQUORUM ") {
			s.otherKeys(t)
			return
		}
	}
}

// otherKeys begins again with keys of which nothing was said before.
func (s *several) otherKeys(t *testing.T) {
	t.Helper()
	s.forget(t)
	for i, key := range s.keys {
		s.keys[i] = fmt.Sprintf("%s'", key)
	}
}

// forget has the single Redis hold nothing.
func (s *several) forget(t *testing.T) {
	t.Helper()
	ask(t, s.single, "FLUSHALL")
	s.history = nil
}

// talk has a conversation of so many commands, a tenth of them in transactions and as many in
// scripts.
func (s *several) talk(t *testing.T, commands int) {
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
				m.Keys = m.Keys[:1] // others change one key at a time
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

func (s *several) transaction(m randomcommands.Maker, shapes []string) [][]string {
	group := [][]string{{"MULTI"}}
	for range 1 + s.random.IntN(4) {
		group = append(group, m.Next(shapes))
	}
	return append(group, []string{"EXEC"})
}

func (s *several) script(m randomcommands.Maker, shapes []string) []string {
	body := severally
	if s.random.IntN(3) == 0 {
		body = "redis.setresp(3)\n" + severally
	}
	words := append([]string{"EVAL", body, strconv.Itoa(len(m.Keys))}, m.Keys...)
	for range 1 + s.random.IntN(4) {
		if call := m.Next(shapes); !randomcommands.Waits(call) { // which Redis 7.0 refuses in scripts
			words = append(append(words, strconv.Itoa(len(call))), call...)
		}
	}
	return words
}

// TestCollectionsAsOneRedis: random commands on hashes, lists, sets and sorted sets in lock keys,
// by themselves, in transactions and in scripts, have byte for byte the replies of a single Redis,
// through two proxies that take turns. What is about several keys may be refused.
func TestCollectionsAsOneRedis(t *testing.T) {
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	masters, upstream, single := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t), kit.StartReference(t)
	args := kit.LockKeyArgs(upstream)
	one, other := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)
	talkInBoth(t, commands, seed, false, single.Addr(), one.Addr(), other.Addr())
}

// TestCollectionsWhileMastersAreKilled: the same while two of five masters at a time are killed,
// and come back with their data, again and again. Nothing is answered otherwise for that, but now
// and then NOQUORUM: after that nobody knows what the keys hold.
func TestCollectionsWhileMastersAreKilled(t *testing.T) {
	redistest.SkipShort(t)
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	f, single := startLockKeyFleet(t, 2), kit.StartReference(t)
	disturber := faults.StartDisturber(f, seed, killed())
	talkInBoth(t, commands, seed, true, single.Addr(), f.Addrs()...)
	done, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", done)
	kit.Must(t, err)
}

// talkInBoth has as many commands in each protocol compared.
func talkInBoth(t *testing.T, commands int, seed uint64, faulty bool, single string, proxies ...string) {
	t.Helper()
	for _, resp := range []string{"2", "3"} {
		s := startSeveral(t, resp, rand.New(rand.NewPCG(seed, uint64(resp[0]))), single, proxies...)
		s.faulty = faulty
		for i := range s.keys {
			s.keys[i] += resp // the other protocol's may change yet, by what was answered NOQUORUM
		}
		s.talk(t, commands/2)
		t.Logf("RESP%s: %d refused, %d unknown", resp, s.refused, s.unknown)
		if s.unknown > commands/4 {
			t.Errorf("%d of %d commands are answered NOQUORUM: too few are compared", s.unknown, commands/2)
		}
	}
}
