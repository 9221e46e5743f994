//go:build integration

package lockkeys

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// releaseScript and extendScript are scripts that clients of a single Redis have used for
	// years.
	releaseScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendScript  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
	// replaceScript is equivalent to SET … IFEQ of a newer Redis.
	replaceScript = `if redis.call("get",KEYS[1]) == ARGV[1] then redis.call("set",KEYS[1],ARGV[2],"PX",ARGV[3]) return 1 else return 0 end`

	// longLastingMillis is a TTL that does not expire during a test.
	longLastingMillis = "600000"
)

// lockClients is a group of clients that use the same few lock keys with ordinary commands.
type lockClients struct {
	// addrs holds the addresses of proxies or single Redis servers; the clients use them in turn.
	addrs []string
	seed  uint64
	verbs []lockVerb // the commands that the clients send
	// supportsLock is set if the addresses support LOCK, UNLOCK and EXTEND, which clients then also
	// send.
	supportsLock bool
	// prefix follows lock: in the names of the keys.
	prefix string
	pool   *keyPool
	// alterReply, if not nil, changes a reply before a client records it.
	alterReply func(client int, op lockOp, reply any) any

	startedAt time.Time
	clients   sync.WaitGroup

	mu sync.Mutex
	tally
}

// tally holds the replies to groups of clients.
type tally struct {
	keyCount          int // number of keys
	elapsed           time.Duration
	replies           map[string]int // number of replies, by command and kind
	causes            map[string]int // number of NOQUORUM replies, by cause
	unexpectedReplies []string       // replies that no client should get
}

// startLockClients lets clients send ops commands in total. The clients use the addresses in turn.
func startLockClients(t *testing.T, c *lockClients, clients, ops int) *lockClients {
	t.Helper()
	c.pool, c.startedAt, c.replies = newKeyPool("lock:"+c.prefix, ops), time.Now(), map[string]int{}
	c.causes = map[string]int{}
	for i := range clients {
		client := &lockClient{group: c, number: i, addr: c.addrs[i%len(c.addrs)],
			random: rand.New(rand.NewPCG(c.seed, uint64(i)+100))}
		kit.Must(t, client.connect())
		c.clients.Go(client.run)
	}
	return c
}

// report waits for all clients, logs the figures, and fails the test on unexpected replies.
func (c *lockClients) report(t *testing.T) {
	t.Helper()
	c.finish().report(t)
}

// finish waits for all clients, and returns the replies.
func (c *lockClients) finish() tally {
	c.clients.Wait()
	c.keyCount, c.elapsed = len(c.pool.keys), time.Since(c.startedAt)
	return c.tally
}

// add combines the replies to two consecutive groups.
func (t tally) add(other tally) tally {
	sum := tally{t.keyCount + other.keyCount, t.elapsed + other.elapsed, map[string]int{}, map[string]int{},
		slices.Concat(t.unexpectedReplies, other.unexpectedReplies)}
	for _, part := range []tally{t, other} {
		for kind, times := range part.replies {
			sum.replies[kind] += times
		}
		for cause, times := range part.causes {
			sum.causes[cause] += times
		}
	}
	return sum
}

// report logs the figures, and fails the test on unexpected replies.
func (t tally) report(test *testing.T) {
	test.Helper()
	total := 0
	for _, n := range t.replies {
		total += n
	}
	test.Logf("%d commands on %d keys in %v: %.0f per second", total, t.keyCount, t.elapsed.Round(time.Millisecond),
		float64(total)/t.elapsed.Seconds())
	for _, kind := range slices.Sorted(maps.Keys(t.replies)) {
		test.Logf("%8d %s", t.replies[kind], kind)
	}
	for _, cause := range slices.Sorted(maps.Keys(t.causes)) {
		test.Logf("%8d times %s", t.causes[cause], cause)
	}
	for i, text := range t.unexpectedReplies {
		if i == 5 {
			test.Fatalf("and %d more", len(t.unexpectedReplies)-i)
		}
		test.Errorf("%s", text)
	}
}

// wantNoFailure fails the test if any command got no reply, or an error other than a late reply.
func (t tally) wantNoFailure(test *testing.T) {
	test.Helper()
	for kind, times := range t.replies {
		if strings.HasSuffix(kind, " → NOQUORUM") || strings.HasSuffix(kind, " → no reply") {
			test.Errorf("%d times %s, with all masters well", times, kind)
		}
	}
}

// countReply counts a reply. An error other than NOQUORUM is unexpected.
func (c *lockClients) countReply(op lockOp, reply any, err error) {
	kind := fmt.Sprintf("%v", reply)
	failure, isError := reply.(redistest.RespError)
	switch {
	case err != nil:
		kind = "no reply"
	case isError:
		kind = kit.FirstWord(string(failure))
		if kit.IsLate(reply) {
			kind += ", too late"
		}
	case op.verb.returnsValue() && reply != nil:
		kind = "a value"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[string(op.verb)+" → "+kind]++
	if isError && strings.HasPrefix(string(failure), "NOQUORUM ") {
		c.causes[string(failure)]++
	}
	if isError && !strings.HasPrefix(string(failure), "NOQUORUM ") {
		c.unexpectedReplies = append(c.unexpectedReplies, fmt.Sprintf("%v: %v", op, failure))
	}
}

// lockClient is one client of a group.
type lockClient struct {
	group     *lockClients
	number    int
	addr      string
	random    *rand.Rand
	client    *redistest.Client
	sha       string
	sentCount int
}

func (m *lockClient) connect() (err error) {
	if m.client, err = redistest.Dial(m.addr, kit.WaitLimit); err != nil {
		return err
	}
	reply, err := m.client.Do("SCRIPT", "LOAD", releaseScript)
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

// run sends commands until enough have been sent.
func (m *lockClient) run() {
	defer func() { _ = m.client.Close() }() // the connection may be closed after an error
	for {
		key, ok := m.group.pool.nextKey(m.random)
		if !ok {
			return
		}
		if !m.sendNext(key) {
			// Another error may follow immediately.
			time.Sleep(time.Millisecond + time.Duration(m.random.Int64N(int64(20*time.Millisecond))))
		}
	}
}

// sendNext sends one command, or a whole transaction. It returns false after an error.
func (m *lockClient) sendNext(key *lockKey) bool {
	op := m.nextOp(key)
	if op.verb == verbExec {
		return m.transact(key, op)
	}
	_, ok := m.send(key, op, m.commandWords(key.name, op)...)
	return ok
}

// send sends a command and records it. It returns false after an error.
func (m *lockClient) send(key *lockKey, op lockOp, words ...string) (reply any, ok bool) {
	from := time.Since(m.group.startedAt)
	reply, err := m.client.Do(words...)
	return m.store(key, lockRecord{op: op, from: from}, asRedisReply(words[0], reply), err)
}

// asRedisReply converts the reply to LOCK and EXTEND to the reply to SET NX and a
// compare-and-expire.
func asRedisReply(command string, reply any) any {
	_, granted := reply.(int64)
	switch {
	case command == "LOCK" && granted:
		return "OK"
	case command == "EXTEND" && granted:
		return int64(1)
	case command == "EXTEND" && reply == nil:
		return int64(0)
	default:
		return reply
	}
}

// store completes and stores the record of a command whose reply has just arrived.
func (m *lockClient) store(key *lockKey, record lockRecord, reply any, err error) (any, bool) {
	record.client, record.to = m.number, time.Since(m.group.startedAt)
	m.group.countReply(record.op, reply, err)
	if _, isError := reply.(redistest.RespError); isError || err != nil {
		record.op.outcome = outcomeUnknown
	}
	if m.group.alterReply != nil {
		reply = m.group.alterReply(m.number, record.op, reply)
	}
	record.reply = reply
	key.add(record)
	if err != nil {
		m.reconnect(err)
	}
	return reply, record.op.outcome == outcomeReplied
}

// transact watches a key, reads it, and replaces its value in a transaction.
func (m *lockClient) transact(key *lockKey, op lockOp) bool {
	watchTime := time.Since(m.group.startedAt)
	if !m.expect("OK", "WATCH", key.name) {
		return false
	}
	value, ok := m.send(key, lockOp{verb: verbGet}, "GET", key.name)
	if !ok {
		m.expect("OK", "UNWATCH")
		return false
	}
	op.expectedValue, _ = value.(string)
	if !m.expect("OK", "MULTI") || !m.expect("QUEUED", "SET", key.name, op.value, "PX", longLastingMillis) {
		return false
	}
	from := time.Since(m.group.startedAt)
	reply, err := m.client.Do("EXEC")
	if replies, isList := reply.([]any); isList && len(replies) == 1 {
		reply = replies[0]
	}
	_, ok = m.store(key, lockRecord{op: op, from: from, watchTime: watchTime}, reply, err)
	return ok
}

// expect sends a command that the history does not record. After an unexpected reply the client
// reconnects, so that no transaction stays open.
func (m *lockClient) expect(want string, words ...string) bool {
	reply, err := m.client.Do(words...)
	if err == nil && reply == any(want) {
		return true
	}
	m.group.countReply(lockOp{verb: lockVerb(words[0])}, reply, err)
	m.reconnect(err)
	return false
}

// reconnect opens a new connection. If that fails, it records the error and continues with a closed
// connection.
func (m *lockClient) reconnect(cause error) {
	_ = m.client.Close()
	if err := m.connect(); err != nil {
		m.group.mu.Lock()
		defer m.group.mu.Unlock()
		m.group.unexpectedReplies = append(m.group.unexpectedReplies, errors.Join(cause, err).Error())
	}
}

// lockingVerbs returns the commands of clients that take and release a lock. The more often a
// command is listed, the more often it is sent. Some commands read or break a lock.
func lockingVerbs() []lockVerb {
	return append(slices.Concat(slices.Repeat([]lockVerb{verbTake}, 8), slices.Repeat([]lockVerb{verbRelease}, 6)),
		verbGet, verbGet, verbGet, verbExtend, verbExtend, verbDel)
}

// overwritingVerbs returns the commands of lockingVerbs, and commands that replace a value.
func overwritingVerbs() []lockVerb {
	return append(lockingVerbs(), verbSwap, verbSwap, verbReplace, verbPut, verbCompareSet, verbCompareSet, verbGetDel,
		verbExec, verbExec)
}

// nextOp generates a command. The value to release, extend or replace is mostly the last value that
// a client has read or written.
func (m *lockClient) nextOp(key *lockKey) lockOp {
	m.sentCount++
	op := lockOp{verb: pick(m.random, m.group.verbs...), value: fmt.Sprintf("%d-%d", m.number, m.sentCount)}
	lastSeen := key.lastKnownValue()
	if lastSeen == "" || m.random.IntN(20) == 0 {
		lastSeen = "of nobody"
	}
	switch op.verb {
	case verbCompareSet:
		op.expectedValue = lastSeen
	case verbRelease, verbExtend:
		op.value = lastSeen
	}
	return op
}

// commandWords returns the command in one of the forms that clients send.
func (m *lockClient) commandWords(key string, op lockOp) []string {
	if form := m.proxyCommand(key, op); form != nil && m.group.supportsLock && m.random.IntN(3) == 0 {
		return form
	}
	alternative := m.random.IntN(2) == 0
	switch op.verb {
	case verbTake:
		if alternative {
			return []string{"SET", key, op.value, "NX"}
		}
		return []string{"SET", key, op.value, "NX", "PX", longLastingMillis}
	case verbReplace:
		return []string{"SET", key, op.value, "PX", longLastingMillis, "XX"}
	case verbPut:
		return []string{"SET", key, op.value, "PX", longLastingMillis}
	case verbSwap:
		return []string{"GETSET", key, op.value}
	case verbCompareSet:
		return []string{"EVAL", replaceScript, "1", key, op.expectedValue, op.value, longLastingMillis}
	case verbRelease:
		if alternative {
			return []string{"EVAL", releaseScript, "1", key, op.value}
		}
		return []string{"EVALSHA", m.sha, "1", key, op.value}
	case verbExtend:
		return []string{"EVAL", extendScript, "1", key, op.value, longLastingMillis}
	default:
		return []string{string(op.verb), key}
	}
}

// proxyCommand returns the equivalent command of the proxy, or nil if there is none.
func (m *lockClient) proxyCommand(key string, op lockOp) []string {
	switch op.verb {
	case verbTake:
		return []string{"LOCK", key, op.value, "PX", longLastingMillis}
	case verbRelease:
		return []string{"UNLOCK", key, op.value}
	case verbExtend:
		return []string{"EXTEND", key, op.value, "PX", longLastingMillis}
	default:
		return nil
	}
}

const (
	keysAtATime = 3
	// opsPerKey and unknownPerKey limit the history of a key. When a key reaches a limit, another
	// key replaces it. The work of a check grows much faster than the history, and with every
	// command without a known result.
	opsPerKey     = 250
	unknownPerKey = 5
)

// keyPool hands out the few keys that all clients use at a time.
type keyPool struct {
	prefix string

	mu          sync.Mutex
	remaining   int // remaining commands
	currentKeys [keysAtATime]*lockKey
	keys        []*lockKey
}

// lockKey is a key and its history.
type lockKey struct {
	name      string
	sentCount int

	mu           sync.Mutex
	records      []lockRecord
	unknownCount int
	lastValue    string // the last value that a client has read or written
}

func newKeyPool(prefix string, ops int) *keyPool {
	pool := &keyPool{prefix: prefix, remaining: ops}
	for i := range pool.currentKeys {
		pool.replace(i)
	}
	return pool
}

func (r *keyPool) replace(i int) {
	r.currentKeys[i] = &lockKey{name: r.prefix + strconv.Itoa(len(r.keys))}
	r.keys = append(r.keys, r.currentKeys[i])
}

// nextKey returns a key for one more command, or false if enough commands have been sent.
func (r *keyPool) nextKey(random *rand.Rand) (*lockKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.remaining == 0 {
		return nil, false
	}
	r.remaining--
	i := random.IntN(keysAtATime)
	if r.currentKeys[i].sentCount == opsPerKey || r.currentKeys[i].hasManyUnknown() {
		r.replace(i)
	}
	r.currentKeys[i].sentCount++
	return r.currentKeys[i], true
}

func (k *lockKey) hasManyUnknown() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unknownCount >= unknownPerKey
}

func (k *lockKey) add(record lockRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, record)
	value, isText := record.reply.(string)
	switch verb := record.op.verb; {
	case record.op.outcome == outcomeUnknown && verb.writes():
		k.unknownCount++
	case record.op.outcome == outcomeUnknown:
	case verb == verbGet && isText:
		k.lastValue = value
	case verb == verbSwap, verb == verbCompareSet && record.reply == int64(1), verb.writesValue() && isText:
		k.lastValue = record.op.value
	}
}

func (k *lockKey) lastKnownValue() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastValue
}
