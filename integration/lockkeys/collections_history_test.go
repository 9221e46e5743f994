//go:build integration

package lockkeys

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// historyOpsEnv names the environment variable with the number of commands that
	// TestHistoriesOfCollections sends.
	historyOpsEnv     = "REDLOCK_COLLECTION_OPS"
	defaultHistoryOps = 2400
	// collectionOpsPerKey and collectionUnknownPerKey limit a history. The work of a check grows
	// much faster than the history, and with every command without a known result.
	collectionOpsPerKey, collectionUnknownPerKey = 60, 3
)

// commandRecord is one command with its reply. unknown is set if its result is unknown.
type commandRecord struct {
	client int
	words  []string
	// steps holds the equivalent commands of a single Redis, if they differ from words. If
	// multiReply is set, the reply is the list of their replies.
	steps      [][]string
	multiReply bool
	condition  *condition
	reply      any
	unknown    bool
	from, to   time.Duration
}

// condition is the string value that a key must have for a command to be executed. elseReply is the
// reply if the key has another value.
type condition struct {
	key, value string
	elseReply  any
	// mayAbort is set if elseReply may also be the reply when the key has this value.
	mayAbort bool
}

// keyHistory is the history of one key, or of several keys in one cell.
type keyHistory struct {
	name         string
	keys         []string
	mu           sync.Mutex
	records      []commandRecord
	sentCount    int
	unknownCount int
}

// reserve reports whether one more command may be sent to the key, and counts it.
func (s *keyHistory) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sentCount++
	return s.sentCount <= collectionOpsPerKey && s.unknownCount < collectionUnknownPerKey
}

func (s *keyHistory) add(d commandRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, d)
	if d.unknown {
		s.unknownCount++
	}
}

// content is the encoded value of a key; an empty value means no key. expires is set if the key has
// a TTL.
type content struct {
	value   string
	expires bool
}

// state holds the values of a history's keys.
type state [3]content

// apply returns the RESP2 replies to commands, and the values of the keys after them.
func (s state) apply(keys []string, steps [][]string) (replies []any, next state) {
	snapshot := keyspace.NewSnapshot(time.UnixMilli(1_700_000_000_000))
	for i, key := range keys {
		remaining := keyspace.NoExpiry
		if s[i].expires {
			remaining = time.Hour
		}
		snapshot.Put(key, keyspace.Entry{Present: s[i].value != "", Value: s[i].value, RemainingTTL: remaining})
	}
	for _, words := range steps {
		reply, err := snapshot.Do(words)
		if err != nil {
			panic(err)
		}
		replies = append(replies, respValue(reply.InRESP2()))
	}
	for _, e := range snapshot.Edits() {
		s[slices.Index(keys, e.Key)] = content{e.After.Value, e.After.Present && e.After.RemainingTTL >= 0}
	}
	return replies, s
}

// step reports whether a command can have its reply in this state, and returns the values of the
// keys after the command.
func (s state) step(keys []string, d commandRecord) (bool, state) {
	if d.condition != nil && s[slices.Index(keys, d.condition.key)].value != d.condition.value {
		return d.unknown || fmt.Sprint(d.condition.elseReply) == fmt.Sprint(d.reply), s
	}
	if d.condition != nil && d.condition.mayAbort && !d.unknown && d.condition.elseReply == d.reply {
		return true, s
	}
	steps := d.steps
	if steps == nil {
		steps = [][]string{d.words}
	}
	replies, next := s.apply(keys, steps)
	reply := replies[0]
	if d.multiReply {
		reply = any(replies)
	}
	return d.unknown || fmt.Sprint(reply) == fmt.Sprint(d.reply), next
}

// respValue returns a reply as package redistest reads it.
func respValue(r keyspace.Reply) any {
	switch r.Kind {
	case keyspace.Nil, keyspace.NilArray:
		return nil
	case keyspace.Int:
		return r.Int
	case keyspace.Error:
		return redistest.RespError(r.Str)
	case keyspace.Array:
		list := make([]any, len(r.Elems))
		for i, e := range r.Elems {
			list[i] = respValue(e)
		}
		return list
	}
	return r.Str
}

// model returns the history's keys as a model for porcupine.
func (s *keyHistory) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(is, input, _ any) (bool, any) {
			possible, next := is.(state).step(s.keys, input.(commandRecord))
			return possible, next
		},
	}
}

// check searches for an order of the commands in which one Redis would have given the same replies.
// A command without a reply was executed once, at any time since the request, or never.
func (s *keyHistory) check() porcupine.CheckResult { return s.checkRecords(s.records) }

func (s *keyHistory) checkRecords(records []commandRecord) porcupine.CheckResult {
	var operations []porcupine.Operation
	for _, d := range records {
		operation := porcupine.Operation{ClientId: d.client, Input: d, Call: int64(d.from), Output: d.reply, Return: int64(d.to)}
		if d.unknown {
			operation.Return = math.MaxInt64
		}
		operations = append(operations, operation)
		if undo, may := possibleUndo(d); may {
			operation.Input = undo
			operations = append(operations, operation)
		}
	}
	return porcupine.CheckOperationsTimeout(s.model(), operations, checkTimeout)
}

// String returns the history in the order of its replies, up to the first reply that cannot be
// explained. It adds the commands in flight at that time.
func (s *keyHistory) String() string {
	ordered := slices.SortedFunc(slices.Values(s.records), func(a, b commandRecord) int { return cmp.Compare(a.to, b.to) })
	first := firstUnexplainedRecord(ordered, func(d commandRecord) (from, to time.Duration) { return d.from, d.to },
		func(d commandRecord) commandRecord { d.unknown = true; return d },
		func(prefix []commandRecord) bool { return s.checkRecords(prefix) != porcupine.Illegal })
	lines := []string{s.name}
	for i, d := range ordered {
		mark := " "
		if i == first {
			mark = ">"
		}
		if i <= first || d.from <= ordered[first].to {
			lines = append(lines, fmt.Sprintf("%s %v–%v client %d: %q → %v", mark, d.from, d.to, d.client, d.words, d.reply))
		}
	}
	return strings.Join(lines, "\n")
}

// collectionClients is a group of clients that use the same few collections.
type collectionClients struct {
	addrs     []string
	kind      string // hash, list, zset or tag
	seed      uint64
	startedAt time.Time

	mu          sync.Mutex
	remaining   int
	currentKeys [2]*keyHistory
	histories   []*keyHistory
	errors      []string // errors that no client should get
	replies     map[string]int
}

// nextKey returns a key for one more command, or false if enough commands have been sent.
func (g *collectionClients) nextKey(random *rand.Rand) (*keyHistory, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.remaining == 0 {
		return nil, false
	}
	g.remaining--
	i := random.IntN(len(g.currentKeys))
	if g.currentKeys[i] == nil || !g.currentKeys[i].reserve() {
		name := fmt.Sprintf("lock:%s:%d", g.kind, len(g.histories))
		g.currentKeys[i] = &keyHistory{name: name, keys: []string{name}, sentCount: 1}
		if g.usesTags() {
			g.currentKeys[i].keys = append(g.currentKeys[i].keys, "lock:x:{"+name+"}", "lock:y:{"+name+"}")
		}
		g.histories = append(g.histories, g.currentKeys[i])
	}
	return g.currentKeys[i], true
}

// nextCommand generates a command. Every element that it pushes to a list is unique.
func (g *collectionClients) nextCommand(random *rand.Rand, key string, client, sentCount int) []string {
	field, own := pick(random, "f", "g"), fmt.Sprintf("%d-%d", client, sentCount)
	member := strconv.Itoa(random.IntN(3))
	switch strings.TrimSuffix(g.kind, "s") {
	case "hash":
		return append([]string{}, pick(random,
			[]string{"HINCRBY", key, field, "1"}, []string{"HINCRBY", key, field, "1"},
			[]string{"HINCRBY", key, field, "-1"}, []string{"HSETNX", key, field, "5"}, []string{"HGET", key, field},
			[]string{"HGETALL", key}, []string{"HDEL", key, field}, []string{"EVAL",
				`return redis.call('hincrby', KEYS[1], ARGV[1], ARGV[2])`, "1", key, field, "2"})...)
	case "list":
		return pick(random, []string{"LPUSH", key, own}, []string{"LPUSH", key, own}, []string{"RPUSH", key, own},
			[]string{"RPOP", key}, []string{"RPOP", key}, []string{"LPOP", key, "2"},
			[]string{"LRANGE", key, "0", "-1"}, []string{"LLEN", key}, []string{"LMOVE", key, key, "LEFT", "RIGHT"})
	default:
		return pick(random, []string{"ZADD", key, "NX", strconv.Itoa(sentCount), member},
			[]string{"ZADD", key, "GT", "CH", strconv.Itoa(sentCount), member}, []string{"ZREM", key, member},
			[]string{"ZINCRBY", key, "1", member},
			[]string{"ZPOPMIN", key}, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}, []string{"ZSCORE", key, member},
			[]string{"ZREMRANGEBYSCORE", key, "-inf", strconv.Itoa(random.IntN(sentCount + 1))})
	}
}

// stripScript returns a command with the same effect as a script.
func stripScript(words []string) []string {
	if words[0] == "EVAL" {
		return []string{"HINCRBY", words[3], words[4], words[5]}
	}
	return words
}

// runClient sends commands until enough have been sent.
func (g *collectionClients) runClient(t *testing.T, number int, addr string) {
	random := rand.New(rand.NewPCG(g.seed, uint64(number)))
	client, err := redistest.Dial(addr, kit.WaitLimit)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = client.Close() }()
	for sent := 1; ; sent++ {
		key, ok := g.nextKey(random)
		if !ok {
			return
		}
		if g.usesTags() {
			err = g.sendToTag(random, client, key, number, sent)
		} else {
			words := g.nextCommand(random, key.name, number, sent)
			_, err = g.do(client, key, commandRecord{client: number, words: stripScript(words)}, words)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// do sends commands, and records only the last command.
func (g *collectionClients) do(client *redistest.Client, key *keyHistory, d commandRecord, commands ...[]string) (reply any, err error) {
	last := commands[len(commands)-1]
	for _, words := range commands[:len(commands)-1] {
		if _, err := client.Do(words...); err != nil {
			return nil, err
		}
	}
	d.from = time.Since(g.startedAt)
	d.reply, err = client.Do(last...)
	d.to = time.Since(g.startedAt)
	failure, failed := d.reply.(redistest.RespError)
	d.unknown = err != nil || failed && (!g.usesTags() || strings.HasPrefix(string(failure), "NOQUORUM "))
	d = asSetReply(d)
	key.add(d)
	g.countReply(last[0], d, string(failure))
	if d.unknown {
		time.Sleep(5 * time.Millisecond) // another error may follow immediately
	}
	return d.reply, err
}

func (g *collectionClients) countReply(command string, d commandRecord, failure string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies[command]++
	if d.unknown {
		g.replies[command+" "+kit.FirstWord(failure)]++
	}
	// With tags, any other error is a reply that the check of the history covers.
	if failure != "" && !strings.HasPrefix(failure, "NOQUORUM ") && !g.usesTags() {
		g.errors = append(g.errors, fmt.Sprintf("%q: %s", d.words, failure))
	}
}

// runCollectionClients lets ten clients send the given number of commands, and checks the replies.
func runCollectionClients(t *testing.T, kind string, seed uint64, ops int, addrs ...string) (violations []*keyHistory, undecidedCount int) {
	t.Helper()
	g := &collectionClients{addrs: addrs, kind: kind, seed: seed, startedAt: time.Now(), remaining: ops, replies: map[string]int{}}
	var clients sync.WaitGroup
	for i := range clientCount {
		clients.Go(func() { g.runClient(t, i, addrs[i%len(addrs)]) })
	}
	clients.Wait()
	for i, text := range g.errors {
		if i < 5 {
			t.Error(text)
		}
	}
	for _, s := range g.histories {
		switch s.check() {
		case porcupine.Illegal:
			violations = append(violations, s)
		case porcupine.Unknown:
			undecidedCount++
		}
	}
	t.Logf("%s: %d histories, %d violations, %d undecided; %v", kind, len(g.histories), len(violations), undecidedCount, g.replies)
	return violations, undecidedCount
}

// wantNoViolations fails the test if a history is impossible at a single Redis.
func wantNoViolations(t *testing.T, kind string, violations []*keyHistory, undecided int) {
	t.Helper()
	for _, s := range violations[:min(maxExamples, len(violations))] {
		t.Log(s)
	}
	if len(violations)+undecided > 0 {
		t.Errorf("%s: %d VIOLATIONS, %d undecided", kind, len(violations), undecided)
	}
}

// TestHistoriesOfCollections checks that every reply is one that a single Redis could have given.
// Ten clients of two proxies use the same few hashes, lists and sorted sets. Meanwhile a minority
// of the masters is stopped, disconnected and killed at random.
func TestHistoriesOfCollections(t *testing.T) {
	redistest.SkipShort(t)
	ops, seed := int(kit.SizeFrom(t, historyOpsEnv, defaultHistoryOps)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", ops, historyOpsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2)
	disturber := faults.StartDisturber(f, seed, lockKeyFaults()...)
	for _, kind := range []string{"hash", "list", "zset"} {
		violations, undecided := runCollectionClients(t, kind, seed, ops/3, f.Addrs()...)
		wantNoViolations(t, kind, violations, undecided)
	}
	faultCounts, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", faultCounts)
	kit.Must(t, err)
}

// TestTwoRedisesInCollectionHistories checks that the checker finds a violation if half of the
// clients use another Redis. It finds none if all clients use one Redis.
func TestTwoRedisesInCollectionHistories(t *testing.T) {
	redistest.SkipShort(t)
	firstAddr, secondAddr := kit.StartReference(t).Addr(), kit.StartReference(t).Addr()
	for _, kind := range []string{"hash", "list", "zset", "tag"} {
		if violations, undecided := runCollectionClients(t, kind, rand.Uint64(), 500, firstAddr); len(violations)+undecided > 0 {
			t.Errorf("%s: %d violations, %d undecided by one Redis", kind, len(violations), undecided)
		}
		if violations, _ := runCollectionClients(t, kind+"s", rand.Uint64(), 500, firstAddr, secondAddr); len(violations) == 0 {
			t.Errorf("%s: no violation was found: the other tests of histories show nothing", kind)
		}
	}
}
