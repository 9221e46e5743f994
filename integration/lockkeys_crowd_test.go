//go:build integration

package integration

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

const (
	// releaseIfOwn and extendIfOwn are what clients of a single Redis have sent for years.
	releaseIfOwn = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendIfOwn  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`

	// longLastingMillis does not end within a test.
	longLastingMillis = "600000"
)

// crowd is clients who use the same few lock keys with ordinary commands, and what they saw.
type crowd struct {
	addrs []string // of proxies, or of single Redises; the clients take turns
	seed  uint64
	verbs []lockVerb // what the clients send
	ring  *keyring
	// tell, if set, changes what a client says that it saw.
	tell func(client int, op lockOp, reply any) any

	began   time.Time
	clients sync.WaitGroup

	mu      sync.Mutex
	replies map[string]int // by command
	wrong   []string       // what no client should be told
}

// startCrowd lets so many clients send commands to these addresses, one after the other, ops in all.
func startCrowd(t *testing.T, c *crowd, clients, ops int) *crowd {
	t.Helper()
	c.ring, c.began, c.replies = newKeyring(ops), time.Now(), map[string]int{}
	for i := range clients {
		m := &member{crowd: c, number: i, addr: c.addrs[i%len(c.addrs)], random: rand.New(rand.NewPCG(c.seed, uint64(i)+100))}
		must(t, m.connect())
		c.clients.Go(m.run)
	}
	return c
}

// report waits until all have ended, logs the figures and wants no reply that nobody should get.
func (c *crowd) report(t *testing.T) {
	t.Helper()
	c.clients.Wait()
	took, total := time.Since(c.began), 0
	for _, n := range c.replies {
		total += n
	}
	t.Logf("%d commands on %d keys in %v: %.0f per second", total, len(c.ring.all), took.Round(time.Millisecond), float64(total)/took.Seconds())
	for _, kind := range slices.Sorted(maps.Keys(c.replies)) {
		t.Logf("%8d %s", c.replies[kind], kind)
	}
	for i, text := range c.wrong {
		if i == 5 {
			t.Fatalf("and %d more", len(c.wrong)-i)
		}
		t.Errorf("%s", text)
	}
}

// count counts a reply; one that is none of those expected is wrong.
func (c *crowd) count(op lockOp, reply any, err error) {
	kind := fmt.Sprintf("%v", reply)
	failure, bad := reply.(harness.RespError)
	switch {
	case err != nil:
		kind = "no reply"
	case bad:
		kind = firstWord(string(failure))
	case op.verb == verbGet && reply != nil, op.verb == verbSwap && reply != nil:
		kind = "a value"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[string(op.verb)+" → "+kind]++
	if bad && !mayHappen(string(failure)) {
		c.wrong = append(c.wrong, fmt.Sprintf("%v: %v", op, failure))
	}
}

// mayHappen tells the errors of masters that fail, and of a key that too many want.
func mayHappen(text string) bool {
	return strings.HasPrefix(text, "NOQUORUM ") || strings.Contains(text, "is being changed by others all the time")
}

// member is one client of a crowd.
type member struct {
	crowd  *crowd
	number int
	addr   string
	random *rand.Rand
	client *harness.Client
	sha    string
	sent   int
}

func (m *member) connect() (err error) {
	if m.client, err = harness.Dial(m.addr, patience); err != nil {
		return err
	}
	reply, err := m.client.Do("SCRIPT", "LOAD", releaseIfOwn)
	if err != nil {
		return err
	}
	sha, ok := reply.(string)
	if !ok {
		return fmt.Errorf("SCRIPT LOAD: %v", reply)
	}
	m.sha = sha
	return nil
}

// run sends commands until there have been enough of them.
func (m *member) run() {
	defer func() { _ = m.client.Close() }() // it may be closed after an error
	for {
		key, ok := m.crowd.ring.next(m.random)
		if !ok {
			return
		}
		if !m.once(key) {
			time.Sleep(time.Millisecond + time.Duration(m.random.Int64N(int64(20*time.Millisecond)))) // an error may come again at once
		}
	}
}

// once sends one command and records it; false after an error.
func (m *member) once(key *lockKey) bool {
	op := m.choose(key)
	from := time.Since(m.crowd.began)
	reply, err := m.client.Do(m.words(key.name, op)...)
	to := time.Since(m.crowd.began)
	m.crowd.count(op, reply, err)
	_, bad := reply.(harness.RespError)
	if bad || err != nil {
		op.fate = lost
		to = max(to, from)
	}
	if m.crowd.tell != nil {
		reply = m.crowd.tell(m.number, op, reply)
	}
	key.add(lockRecord{client: m.number, op: op, reply: reply, from: from, to: to})
	if err != nil {
		m.again(err)
	}
	return op.fate == answered
}

// again connects anew; when that fails as well, it says so and goes on with a connection that is closed.
func (m *member) again(cause error) {
	_ = m.client.Close()
	if err := m.connect(); err != nil {
		m.crowd.mu.Lock()
		defer m.crowd.mu.Unlock()
		m.crowd.wrong = append(m.crowd.wrong, errors.Join(cause, err).Error())
	}
}

// locking is what clients do who take a lock and give it back, each command as often as it stands here; some look, or break a lock.
func locking() []lockVerb {
	return append(slices.Concat(slices.Repeat([]lockVerb{verbTake}, 8), slices.Repeat([]lockVerb{verbRelease}, 6)),
		verbGet, verbGet, verbGet, verbExtend, verbExtend, verbDel)
}

// overwriting is the same with those among them who put one value in the place of another.
func overwriting() []lockVerb { return append(locking(), verbSwap, verbSwap, verbReplace) }

// choose makes up a command. What is released or extended is mostly what was seen there last, by this client or another.
func (m *member) choose(key *lockKey) lockOp {
	m.sent++
	op := lockOp{verb: pick(m.random, m.crowd.verbs...), value: fmt.Sprintf("%d-%d", m.number, m.sent)}
	if seen := key.lastSeen(); seen != "" && !op.verb.gives() && m.random.IntN(20) > 0 {
		op.value = seen
	}
	return op
}

// words are the command, in one of the forms in which clients send it.
func (m *member) words(key string, op lockOp) []string {
	coin := m.random.IntN(2) == 0
	switch op.verb {
	case verbTake:
		if coin {
			return []string{"SET", key, op.value, "NX"}
		}
		return []string{"SET", key, op.value, "NX", "PX", longLastingMillis}
	case verbReplace:
		return []string{"SET", key, op.value, "PX", longLastingMillis, "XX"}
	case verbSwap:
		return []string{"GETSET", key, op.value}
	case verbRelease:
		if coin {
			return []string{"EVAL", releaseIfOwn, "1", key, op.value}
		}
		return []string{"EVALSHA", m.sha, "1", key, op.value}
	case verbExtend:
		return []string{"EVAL", extendIfOwn, "1", key, op.value, longLastingMillis}
	default:
		return []string{string(op.verb), key}
	}
}

const (
	keysAtATime = 3
	// opsPerKey and lostPerKey bound the history of a key, then another takes its place: the work of a check grows much faster than
	// its history, and with every command of which nobody knows.
	opsPerKey  = 250
	lostPerKey = 5
)

// keyring hands out the few keys that all clients use at a time.
type keyring struct {
	mu   sync.Mutex
	left int // commands to come
	used [keysAtATime]*lockKey
	all  []*lockKey
}

// lockKey is a key and its history.
type lockKey struct {
	name   string
	handed int

	mu      sync.Mutex
	records []lockRecord
	lost    int
	seen    string // the last value that a reply told of
}

func newKeyring(ops int) *keyring {
	ring := &keyring{left: ops}
	for i := range ring.used {
		ring.replace(i)
	}
	return ring
}

func (r *keyring) replace(i int) {
	r.used[i] = &lockKey{name: fmt.Sprintf("lock:%d", len(r.all))}
	r.all = append(r.all, r.used[i])
}

// next is a key for one more command, unless there have been enough.
func (r *keyring) next(random *rand.Rand) (*lockKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		return nil, false
	}
	r.left--
	i := random.IntN(keysAtATime)
	if r.used[i].handed == opsPerKey || r.used[i].isSpoilt() {
		r.replace(i)
	}
	r.used[i].handed++
	return r.used[i], true
}

func (k *lockKey) isSpoilt() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost >= lostPerKey
}

func (k *lockKey) add(one lockRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, one)
	value, isText := one.reply.(string)
	switch verb := one.op.verb; {
	case one.op.fate == lost && verb.writes():
		k.lost++
	case one.op.fate == lost:
	case verb == verbGet && isText:
		k.seen = value
	case verb == verbSwap, verb.gives() && isText:
		k.seen = one.op.value
	}
}

func (k *lockKey) lastSeen() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}
