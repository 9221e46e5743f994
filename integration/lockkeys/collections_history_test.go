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
	// historyOpsEnv sets how many commands TestHistoriesOfCollections sends.
	historyOpsEnv     = "REDLOCK_COLLECTION_OPS"
	defaultHistoryOps = 2400
	// collectionOpsPerKey and collectionLostPerKey limit a history. The work of a check grows much
	// faster than its history, and with every command without a known result.
	collectionOpsPerKey, collectionLostPerKey = 60, 3
)

// deed is one command with its reply. lost is set if the result is unknown.
type deed struct {
	client int
	words  []string
	// steps are the equivalent commands of a single Redis, if they differ from words. If several is
	// set, the reply is the list of their replies.
	steps    [][]string
	several  bool
	only     *condition
	reply    any
	lost     bool
	from, to time.Duration
}

// condition is the string value that a key must have for a deed to have an effect. otherwise is the
// reply if the key has another value.
type condition struct {
	key, value string
	otherwise  any
	// may is set if the deed may have the reply otherwise for no reason.
	may bool
}

// keyHistory is the history of one key, or of several keys in one cell.
type keyHistory struct {
	name  string
	keys  []string
	mu    sync.Mutex
	deeds []deed
	given int
	lost  int
}

// take reports whether one more command may be sent to the key, and counts it.
func (s *keyHistory) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
	return s.given <= collectionOpsPerKey && s.lost < collectionLostPerKey
}

func (s *keyHistory) add(d deed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deeds = append(s.deeds, d)
	if d.lost {
		s.lost++
	}
}

// content is the encoded value of a key, and whether it expires; an empty value means no key.
type content struct {
	value string
	ends  bool
}

// state holds the values of a history's keys.
type state [3]content

// after returns the RESP2 replies to commands, and the values of the keys after them.
func (s state) after(keys []string, steps [][]string) (replies []any, next state) {
	space := keyspace.NewSnapshot(time.UnixMilli(1_700_000_000_000))
	for i, key := range keys {
		left := keyspace.NoExpiry
		if s[i].ends {
			left = time.Hour
		}
		space.Put(key, keyspace.Entry{Present: s[i].value != "", Value: s[i].value, Left: left})
	}
	for _, words := range steps {
		reply, err := space.Do(words)
		if err != nil {
			panic(err)
		}
		replies = append(replies, seen(reply.Plain()))
	}
	for _, e := range space.Edits() {
		s[slices.Index(keys, e.Key)] = content{e.After.Value, e.After.Present && e.After.Left >= 0}
	}
	return replies, s
}

// step returns the values of the keys after a deed, or false if the deed cannot have its reply.
func (s state) step(keys []string, d deed) (bool, state) {
	if d.only != nil && s[slices.Index(keys, d.only.key)].value != d.only.value {
		return d.lost || fmt.Sprint(d.only.otherwise) == fmt.Sprint(d.reply), s
	}
	if d.only != nil && d.only.may && !d.lost && d.only.otherwise == d.reply {
		return true, s
	}
	steps := d.steps
	if steps == nil {
		steps = [][]string{d.words}
	}
	replies, next := s.after(keys, steps)
	reply := replies[0]
	if d.several {
		reply = any(replies)
	}
	return d.lost || fmt.Sprint(reply) == fmt.Sprint(d.reply), next
}

// seen returns a reply as package redistest reads it.
func seen(r keyspace.Reply) any {
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
			list[i] = seen(e)
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
			possible, next := is.(state).step(s.keys, input.(deed))
			return possible, next
		},
	}
}

// check searches for an order of the commands in which one Redis would have given the same replies.
// A command without a reply was executed once, at any time since the request, or never.
func (s *keyHistory) check() porcupine.CheckResult { return s.explain(s.deeds) }

func (s *keyHistory) explain(deeds []deed) porcupine.CheckResult {
	var all []porcupine.Operation
	for _, d := range deeds {
		one := porcupine.Operation{ClientId: d.client, Input: d, Call: int64(d.from), Output: d.reply, Return: int64(d.to)}
		if d.lost {
			one.Return = math.MaxInt64
		}
		all = append(all, one)
		if back, may := undoneAfter(d); may {
			one.Input = back
			all = append(all, one)
		}
	}
	return porcupine.CheckOperationsTimeout(s.model(), all, checkPatience)
}

// String returns the history in the order of its replies, up to the first reply that cannot be
// explained, and the commands in flight at that time.
func (s *keyHistory) String() string {
	ordered := slices.SortedFunc(slices.Values(s.deeds), func(a, b deed) int { return cmp.Compare(a.to, b.to) })
	first := firstUnexplained(ordered, func(d deed) (from, to time.Duration) { return d.from, d.to },
		func(d deed) deed { d.lost = true; return d },
		func(upTo []deed) bool { return s.explain(upTo) != porcupine.Illegal })
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

// gathering is a group of clients that use the same few collections.
type gathering struct {
	addrs []string
	kind  string // hash, list, zset or tag
	seed  uint64
	began time.Time

	mu      sync.Mutex
	left    int
	current [2]*keyHistory
	stories []*keyHistory
	errors  []string // errors that no client should get
	replies map[string]int
}

// next returns a key for one more command.
func (g *gathering) next(random *rand.Rand) (*keyHistory, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left == 0 {
		return nil, false
	}
	g.left--
	i := random.IntN(len(g.current))
	if g.current[i] == nil || !g.current[i].take() {
		name := fmt.Sprintf("lock:%s:%d", g.kind, len(g.stories))
		g.current[i] = &keyHistory{name: name, keys: []string{name}, given: 1}
		if g.isOfTags() {
			g.current[i].keys = append(g.current[i].keys, "lock:x:{"+name+"}", "lock:y:{"+name+"}")
		}
		g.stories = append(g.stories, g.current[i])
	}
	return g.current[i], true
}

// words generates a command. Its values are unique to this client, except in counters.
func (g *gathering) words(random *rand.Rand, key string, client, sent int) []string {
	field, own := pick(random, "f", "g"), fmt.Sprintf("%d-%d", client, sent)
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
		return pick(random, []string{"ZADD", key, "NX", strconv.Itoa(sent), member},
			[]string{"ZADD", key, "GT", "CH", strconv.Itoa(sent), member}, []string{"ZREM", key, member},
			[]string{"ZINCRBY", key, "1", member},
			[]string{"ZPOPMIN", key}, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}, []string{"ZSCORE", key, member},
			[]string{"ZREMRANGEBYSCORE", key, "-inf", strconv.Itoa(random.IntN(sent + 1))})
	}
}

// plain returns a command with the same effect as a script.
func plain(words []string) []string {
	if words[0] == "EVAL" {
		return []string{"HINCRBY", words[3], words[4], words[5]}
	}
	return words
}

// client sends commands until enough have been sent.
func (g *gathering) client(t *testing.T, number int, addr string) {
	random := rand.New(rand.NewPCG(g.seed, uint64(number)))
	client, err := redistest.Dial(addr, kit.Patience)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = client.Close() }()
	for sent := 1; ; sent++ {
		key, ok := g.next(random)
		if !ok {
			return
		}
		if g.isOfTags() {
			err = g.turnOfTags(random, client, key, number, sent)
		} else {
			words := g.words(random, key.name, number, sent)
			_, err = g.do(client, key, deed{client: number, words: plain(words)}, words)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// do sends commands; the last one is the deed.
func (g *gathering) do(client *redistest.Client, key *keyHistory, d deed, commands ...[]string) (reply any, err error) {
	last := commands[len(commands)-1]
	for _, words := range commands[:len(commands)-1] {
		if _, err := client.Do(words...); err != nil {
			return nil, err
		}
	}
	d.from = time.Since(g.began)
	d.reply, err = client.Do(last...)
	d.to = time.Since(g.began)
	failure, failed := d.reply.(redistest.RespError)
	d.lost = err != nil || failed && (!g.isOfTags() || strings.HasPrefix(string(failure), "NOQUORUM "))
	d = asPlain(d)
	key.add(d)
	g.note(last[0], d, string(failure))
	if d.lost {
		time.Sleep(5 * time.Millisecond) // another error may follow immediately
	}
	return d.reply, err
}

func (g *gathering) note(command string, d deed, failure string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replies[command]++
	if d.lost {
		g.replies[command+" "+kit.FirstWord(failure)]++
	}
	if failure != "" && !strings.HasPrefix(failure, "NOQUORUM ") && !g.isOfTags() { // errors that the model allows
		g.errors = append(g.errors, fmt.Sprintf("%q: %s", d.words, failure))
	}
}

// gather lets ten clients send the given number of commands, and checks the replies.
func gather(t *testing.T, kind string, seed uint64, ops int, addrs ...string) (wrong []*keyHistory, undecided int) {
	t.Helper()
	g := &gathering{addrs: addrs, kind: kind, seed: seed, began: time.Now(), left: ops, replies: map[string]int{}}
	var clients sync.WaitGroup
	for i := range crowdSize {
		clients.Go(func() { g.client(t, i, addrs[i%len(addrs)]) })
	}
	clients.Wait()
	for i, text := range g.errors {
		if i < 5 {
			t.Error(text)
		}
	}
	for _, s := range g.stories {
		switch s.check() {
		case porcupine.Illegal:
			wrong = append(wrong, s)
		case porcupine.Unknown:
			undecided++
		}
	}
	t.Logf("%s: %d histories, %d violations, %d undecided; %v", kind, len(g.stories), len(wrong), undecided, g.replies)
	return wrong, undecided
}

// wantExplained fails the test if a history is impossible at a single Redis.
func wantExplained(t *testing.T, kind string, wrong []*keyHistory, undecided int) {
	t.Helper()
	for _, s := range wrong[:min(maxExamples, len(wrong))] {
		t.Log(s)
	}
	if len(wrong)+undecided > 0 {
		t.Errorf("%s: %d VIOLATIONS, %d undecided", kind, len(wrong), undecided)
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
	disturber := faults.StartDisturber(f, seed, lockKeyDisturbances()...)
	for _, kind := range []string{"hash", "list", "zset"} {
		wrong, undecided := gather(t, kind, seed, ops/3, f.Addrs()...)
		wantExplained(t, kind, wrong, undecided)
	}
	done, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", done)
	kit.Must(t, err)
}

// TestHistoriesOfCollectionsSeeTwoRedises checks the checker: if half of the clients use another
// Redis, it finds a violation; if all use one Redis, it finds none.
func TestHistoriesOfCollectionsSeeTwoRedises(t *testing.T) {
	redistest.SkipShort(t)
	one, other := kit.StartReference(t).Addr(), kit.StartReference(t).Addr()
	for _, kind := range []string{"hash", "list", "zset", "tag"} {
		if wrong, undecided := gather(t, kind, rand.Uint64(), 500, one); len(wrong)+undecided > 0 {
			t.Errorf("%s: %d violations, %d undecided by one Redis", kind, len(wrong), undecided)
		}
		if wrong, _ := gather(t, kind+"s", rand.Uint64(), 500, one, other); len(wrong) == 0 {
			t.Errorf("%s: no violation was found: the other tests of histories show nothing", kind)
		}
	}
}
