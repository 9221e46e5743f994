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
	// collectionsEnv names the environment variable with the number of commands that
	// TestCollectionsAsOneRedis and TestCollectionsDuringMasterKills compare.
	collectionsEnv = "REDLOCK_COLLECTIONS"
	// defaultCollections is the default; it takes some seconds on two busy cores.
	defaultCollections = 3000
)

// callEachScript runs the commands in its arguments. Before each command, its number of words is an
// argument.
const callEachScript = `local out, i = {}, 1
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
	proxies     []*peer
	singleRedis *peer
	keys        []string
	random      *rand.Rand
	history     []string
	refusals    int
	// mastersFail is set if masters fail during the comparison. After NOQUORUM or a late reply the
	// command may have been executed, or may be executed later: the comparison continues with new keys.
	mastersFail  bool
	unknownCount int
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
		query(t, p, "HELLO", resp)
		s.proxies = append(s.proxies, p)
	}
	s.singleRedis, s.proxies = s.proxies[len(proxies)], s.proxies[:len(proxies)]
	return s
}

func query(t *testing.T, p *peer, words ...string) peerReply {
	t.Helper()
	kit.Must(t, p.send(words))
	got, err := p.receive()
	kit.Must(t, err)
	return got
}

// compareGroup sends commands to one of the proxies and to the single Redis. It returns false if
// the proxy refused to change several keys together, or returned NOQUORUM. Then the comparison
// starts again without values.
func (s *comparison) compareGroup(t *testing.T, group ...[]string) bool {
	t.Helper()
	p := s.proxies[s.random.IntN(len(s.proxies))]
	for _, words := range group {
		s.history = append(s.history, fmt.Sprintf("%q", words))
		proxyReply, redisReply := query(t, p, words...), query(t, s.singleRedis, words...)
		if strings.HasPrefix(proxyReply.raw, "-ERR lock keys '") && strings.Contains(proxyReply.raw,
			" cannot be changed together: ") && (s.mayRefuse == nil || s.mayRefuse(words)) {
			s.refusals++
			s.deleteKeys(t)
			return false
		}
		if s.isUnknown(proxyReply.raw) {
			s.unknownCount++
			if group[0][0] == "MULTI" && words[0] != "EXEC" {
				query(t, p, "DISCARD")
				query(t, s.singleRedis, "DISCARD")
			}
			s.useNewKeys(t)
			return false
		}
		if group[0][0] == "MULTI" && isError(proxyReply.raw) && isError(redisReply.raw) {
			continue // the errors for commands without a lock key have different texts
		}
		unordered := randomcommands.IsUnordered(words) || strings.EqualFold(words[0], "EVAL") ||
			strings.EqualFold(words[0], "EXEC")
		if proxyReply.raw != redisReply.raw && !(unordered && unorderedText(proxyReply.value) == unorderedText(redisReply.value)) {
			t.Fatalf("after\n%s\n got  %q\n want %q", strings.Join(s.history[max(0, len(s.history)-30):], "\n"),
				proxyReply.raw, redisReply.raw)
		}
	}
	return true
}

// isUnknown reports whether a proxy's reply leaves the outcome of a command unknown.
func (s *comparison) isUnknown(raw string) bool {
	return s.mastersFail && strings.Contains(raw, "-NOQUORUM ") || kit.IsLateText(raw)
}

func isError(raw string) bool { return strings.HasPrefix(raw, "-") }

// unorderedText returns a reply without the order of its items.
func unorderedText(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprintf("%T %v", value, value)
	}
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = unorderedText(e)
	}
	slices.Sort(parts)
	return fmt.Sprint(parts)
}

// deleteKeys removes all keys.
func (s *comparison) deleteKeys(t *testing.T) {
	t.Helper()
	s.flushSingle(t)
	for _, key := range s.keys {
		if reply := query(t, s.proxies[0], "DEL", key); s.isUnknown(reply.raw) {
			s.useNewKeys(t)
			return
		}
	}
}

// useNewKeys continues the comparison with new keys, and without values.
func (s *comparison) useNewKeys(t *testing.T) {
	t.Helper()
	s.flushSingle(t)
	s.keys = newNames(s.keys)
}

// flushSingle empties the single Redis.
func (s *comparison) flushSingle(t *testing.T) {
	t.Helper()
	query(t, s.singleRedis, "FLUSHALL")
	s.history = nil
}

// run sends about the given number of commands, or more. At least a tenth of the groups are
// transactions, and about a tenth are scripts. If too many outcomes are unknown, it fails the test.
func (s *comparison) run(t *testing.T, commands int) {
	t.Helper()
	m := randomcommands.Generator{Rand: s.random, ExactWordCount: true}
	for sent := 0; sent < commands; {
		themes := randomcommands.TemplateLists()
		shapes := slices.DeleteFunc(themes[s.random.IntN(len(themes))], randomcommands.MayMiscountKeys)
		s.deleteKeys(t)
		for range 40 {
			m.Keys = s.keys
			kind := s.random.IntN(10)
			if kind < 7 && s.random.IntN(3) > 0 {
				m.Keys = m.Keys[:1] // most commands change one key at a time
			}
			group := [][]string{m.Next(shapes)}
			switch {
			case kind < 5 && randomcommands.MayBlock(group[0]), kind == 5:
				group = s.transaction(m, shapes)
			case kind == 6:
				group = [][]string{s.script(m, shapes)}
			}
			if randomcommands.MayBlock(group[0]) {
				continue
			}
			sent += len(group)
			if !s.compareGroup(t, group...) {
				break
			}
		}
	}
	if s.unknownCount > commands/2 {
		t.Errorf("the outcome of %d of %d commands is unknown: too few are compared", s.unknownCount, commands)
	}
}

func (s *comparison) transaction(m randomcommands.Generator, shapes []string) [][]string {
	group := [][]string{{"MULTI"}}
	for range 1 + s.random.IntN(4) {
		group = append(group, m.Next(shapes))
	}
	return append(group, []string{"EXEC"})
}

func (s *comparison) script(m randomcommands.Generator, shapes []string) []string {
	body := callEachScript
	if s.random.IntN(3) == 0 {
		body = "redis.setresp(3)\n" + callEachScript
	}
	words := append([]string{"EVAL", body, strconv.Itoa(len(m.Keys))}, m.Keys...)
	for range 1 + s.random.IntN(4) {
		// Redis 7.0 refuses blocking commands in scripts.
		if call := m.Next(shapes); !randomcommands.MayBlock(call) {
			words = append(append(words, strconv.Itoa(len(call))), call...)
		}
	}
	return words
}

// TestCollectionsAsOneRedis checks that random commands on collections in lock keys get byte for
// byte the replies of a single Redis. The collections are hashes, lists, sets and sorted sets. The
// commands run alone, in transactions and in scripts, each through a random one of two proxies. The
// proxy may refuse commands on several keys.
func TestCollectionsAsOneRedis(t *testing.T) {
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)),
		kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	masters, upstream, single := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t), kit.StartReference(t)
	args := kit.LockKeyArgs(upstream)
	firstProxy, secondProxy := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)
	compareInBothProtocols(t, commands, seed, false, single.Addr(), firstProxy.Addr(), secondProxy.Addr())
}

// TestCollectionsDuringMasterKills repeats TestCollectionsAsOneRedis while two of five masters
// at a time are killed and restart with their data. The replies are the same, except for some
// NOQUORUM, after which the values of the keys are unknown.
func TestCollectionsDuringMasterKills(t *testing.T) {
	redistest.SkipShort(t)
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)),
		kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	f, single := startLockKeyFleet(t, 2), kit.StartReference(t)
	disturber := faults.StartDisturber(f, seed, crashFault())
	compareInBothProtocols(t, commands, seed, true, single.Addr(), f.Addrs()...)
	faultCounts, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", faultCounts)
	kit.Must(t, err)
}

// compareInBothProtocols compares half of the given number of commands in each protocol.
func compareInBothProtocols(t *testing.T, commands int, seed uint64, mastersFail bool, single string, proxies ...string) {
	t.Helper()
	for _, resp := range []string{"2", "3"} {
		s := startComparison(t, resp, rand.New(rand.NewPCG(seed, uint64(resp[0]))), single, proxies...)
		s.mastersFail = mastersFail
		for i := range s.keys {
			// The keys of the other protocol may still change, by commands that got NOQUORUM.
			s.keys[i] += resp
		}
		s.run(t, commands/2)
		t.Logf("RESP%s: %d refused, %d unknown", resp, s.refusals, s.unknownCount)
	}
}
