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
	// releaseIfOwn and extendIfOwn are scripts that clients of a single Redis have used for years.
	releaseIfOwn = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendIfOwn  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
	// replaceIfOwn is equivalent to SET … IFEQ of a newer Redis.
	replaceIfOwn = `if redis.call("get",KEYS[1]) == ARGV[1] then redis.call("set",KEYS[1],ARGV[2],"PX",ARGV[3]) return 1 else return 0 end`

	// longLastingMillis is a lease that does not expire during a test.
	longLastingMillis = "600000"
)

// crowd is a group of clients that use the same few lock keys with ordinary commands.
type crowd struct {
	addrs []string // of proxies, or of single Redis servers; the clients take turns
	seed  uint64
	verbs []lockVerb // the commands that the clients send
	// proxied is set if the addresses support LOCK, UNLOCK and EXTEND, which clients then also
	// send.
	proxied bool
	// prefix is the beginning of the names of the keys, after lock:
	prefix string
	ring   *keyring
	// tell, if not nil, changes a reply before a client records it.
	tell func(client int, op lockOp, reply any) any

	began   time.Time
	clients sync.WaitGroup

	mu sync.Mutex
	tally
}

// tally holds the replies to crowds.
type tally struct {
	used    int // keys
	took    time.Duration
	replies map[string]int // by command
	causes  map[string]int // of NOQUORUM
	wrong   []string       // replies that no client should get
}

// startCrowd lets clients send ops commands in total. The clients use the addresses in turn.
func startCrowd(t *testing.T, c *crowd, clients, ops int) *crowd {
	t.Helper()
	c.ring, c.began, c.replies = newKeyring("lock:"+c.prefix, ops), time.Now(), map[string]int{}
	c.causes = map[string]int{}
	for i := range clients {
		m := &member{crowd: c, number: i, addr: c.addrs[i%len(c.addrs)],
			random: rand.New(rand.NewPCG(c.seed, uint64(i)+100))}
		kit.Must(t, m.connect())
		c.clients.Go(m.run)
	}
	return c
}

// report waits for all clients, logs the figures, and fails the test on unexpected replies.
func (c *crowd) report(t *testing.T) {
	t.Helper()
	c.finish().report(t)
}

// finish waits until all clients have finished.
func (c *crowd) finish() tally {
	c.clients.Wait()
	c.used, c.took = len(c.ring.all), time.Since(c.began)
	return c.tally
}

// plus combines the replies to two consecutive crowds.
func (t tally) plus(other tally) tally {
	sum := tally{t.used + other.used, t.took + other.took, map[string]int{}, map[string]int{},
		slices.Concat(t.wrong, other.wrong)}
	for _, one := range []tally{t, other} {
		for kind, times := range one.replies {
			sum.replies[kind] += times
		}
		for cause, times := range one.causes {
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
	test.Logf("%d commands on %d keys in %v: %.0f per second", total, t.used, t.took.Round(time.Millisecond),
		float64(total)/t.took.Seconds())
	for _, kind := range slices.Sorted(maps.Keys(t.replies)) {
		test.Logf("%8d %s", t.replies[kind], kind)
	}
	for _, cause := range slices.Sorted(maps.Keys(t.causes)) {
		test.Logf("%8d times %s", t.causes[cause], cause)
	}
	for i, text := range t.wrong {
		if i == 5 {
			test.Fatalf("and %d more", len(t.wrong)-i)
		}
		test.Errorf("%s", text)
	}
}

// wantNoFailure fails the test if any command got an error or no reply.
func (t tally) wantNoFailure(test *testing.T) {
	test.Helper()
	for kind, times := range t.replies {
		if strings.HasSuffix(kind, " → NOQUORUM") || strings.HasSuffix(kind, " → no reply") {
			test.Errorf("%d times %s, with all masters well", times, kind)
		}
	}
}

// count counts a reply. An unexpected reply is an error.
func (c *crowd) count(op lockOp, reply any, err error) {
	kind := fmt.Sprintf("%v", reply)
	failure, bad := reply.(redistest.RespError)
	switch {
	case err != nil:
		kind = "no reply"
	case bad:
		kind = kit.FirstWord(string(failure))
	case op.verb.returnsValue() && reply != nil:
		kind = "a value"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[string(op.verb)+" → "+kind]++
	if bad && strings.HasPrefix(string(failure), "NOQUORUM ") {
		c.causes[string(failure)]++
	}
	if bad && !strings.HasPrefix(string(failure), "NOQUORUM ") {
		c.wrong = append(c.wrong, fmt.Sprintf("%v: %v", op, failure))
	}
}

// member is one client of a crowd.
type member struct {
	crowd  *crowd
	number int
	addr   string
	random *rand.Rand
	client *redistest.Client
	sha    string
	sent   int
}

func (m *member) connect() (err error) {
	if m.client, err = redistest.Dial(m.addr, kit.Patience); err != nil {
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

// run sends commands until enough have been sent.
func (m *member) run() {
	defer func() { _ = m.client.Close() }() // it may be closed after an error
	for {
		key, ok := m.crowd.ring.next(m.random)
		if !ok {
			return
		}
		if !m.once(key) {
			// Another error may follow immediately.
			time.Sleep(time.Millisecond + time.Duration(m.random.Int64N(int64(20*time.Millisecond))))
		}
	}
}

// once sends one command, or a whole transaction. It returns false after an error.
func (m *member) once(key *lockKey) bool {
	op := m.choose(key)
	if op.verb == verbExec {
		return m.transact(key, op)
	}
	_, ok := m.send(key, op, m.words(key.name, op)...)
	return ok
}

// send sends a command and records it. It returns false after an error.
func (m *member) send(key *lockKey, op lockOp, words ...string) (reply any, ok bool) {
	from := time.Since(m.crowd.began)
	reply, err := m.client.Do(words...)
	return m.record(key, lockRecord{op: op, from: from}, ordinary(words[0], reply), err)
}

// ordinary converts the reply to LOCK and EXTEND to the reply to SET NX and a compare-and-expire.
func ordinary(command string, reply any) any {
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

// record completes and stores the record of a command whose reply has just arrived.
func (m *member) record(key *lockKey, one lockRecord, reply any, err error) (any, bool) {
	one.client, one.to = m.number, time.Since(m.crowd.began)
	m.crowd.count(one.op, reply, err)
	if _, bad := reply.(redistest.RespError); bad || err != nil {
		one.op.fate = lost
	}
	if m.crowd.tell != nil {
		reply = m.crowd.tell(m.number, one.op, reply)
	}
	one.reply = reply
	key.add(one)
	if err != nil {
		m.again(err)
	}
	return reply, one.op.fate == answered
}

// transact watches a key, reads it, and replaces the value that it has read.
func (m *member) transact(key *lockKey, op lockOp) bool {
	watched := time.Since(m.crowd.began)
	if !m.expect("OK", "WATCH", key.name) {
		return false
	}
	read, ok := m.send(key, lockOp{verb: verbGet}, "GET", key.name)
	if !ok {
		m.expect("OK", "UNWATCH")
		return false
	}
	op.expects, _ = read.(string)
	if !m.expect("OK", "MULTI") || !m.expect("QUEUED", "SET", key.name, op.value, "PX", longLastingMillis) {
		return false
	}
	from := time.Since(m.crowd.began)
	reply, err := m.client.Do("EXEC")
	if replies, isList := reply.([]any); isList && len(replies) == 1 {
		reply = replies[0]
	}
	_, ok = m.record(key, lockRecord{op: op, from: from, watched: watched}, reply, err)
	return ok
}

// expect sends a command that uses no key. After an unexpected reply the client reconnects, so that
// no transaction stays open.
func (m *member) expect(want string, words ...string) bool {
	reply, err := m.client.Do(words...)
	if err == nil && reply == any(want) {
		return true
	}
	m.crowd.count(lockOp{verb: lockVerb(words[0])}, reply, err)
	m.again(err)
	return false
}

// again reconnects. If that fails, it records the error and continues with a closed connection.
func (m *member) again(cause error) {
	_ = m.client.Close()
	if err := m.connect(); err != nil {
		m.crowd.mu.Lock()
		defer m.crowd.mu.Unlock()
		m.crowd.wrong = append(m.crowd.wrong, errors.Join(cause, err).Error())
	}
}

// locking returns the commands of clients that take and release a lock. The more often a command is
// listed, the more often it is sent. Some commands read or break a lock.
func locking() []lockVerb {
	return append(slices.Concat(slices.Repeat([]lockVerb{verbTake}, 8), slices.Repeat([]lockVerb{verbRelease}, 6)),
		verbGet, verbGet, verbGet, verbExtend, verbExtend, verbDel)
}

// overwriting returns the commands of locking, and commands that replace one value by another.
func overwriting() []lockVerb {
	return append(locking(), verbSwap, verbSwap, verbReplace, verbPut, verbCompareSet, verbCompareSet, verbGetDel,
		verbExec, verbExec)
}

// choose generates a command. The value to release, extend or replace is mostly the last one that
// this client or another one has read.
func (m *member) choose(key *lockKey) lockOp {
	m.sent++
	op := lockOp{verb: pick(m.random, m.crowd.verbs...), value: fmt.Sprintf("%d-%d", m.number, m.sent)}
	seen := key.lastSeen()
	if seen == "" || m.random.IntN(20) == 0 {
		seen = "of nobody"
	}
	switch op.verb {
	case verbCompareSet:
		op.expects = seen
	case verbRelease, verbExtend:
		op.value = seen
	}
	return op
}

// words returns the command in one of the forms that clients send.
func (m *member) words(key string, op lockOp) []string {
	if form := m.lockForm(key, op); form != nil && m.crowd.proxied && m.random.IntN(3) == 0 {
		return form
	}
	coin := m.random.IntN(2) == 0
	switch op.verb {
	case verbTake:
		if coin {
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
		return []string{"EVAL", replaceIfOwn, "1", key, op.expects, op.value, longLastingMillis}
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

// lockForm returns the equivalent command of the proxy, or nil if there is none.
func (m *member) lockForm(key string, op lockOp) []string {
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
	// opsPerKey and lostPerKey limit the history of a key; then another key replaces it. The work
	// of a check grows much faster than its history, and with every command without a known result.
	opsPerKey  = 250
	lostPerKey = 5
)

// keyring hands out the few keys that all clients use at a time.
type keyring struct {
	prefix string

	mu   sync.Mutex
	left int // remaining commands
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
	seen    string // the last value that a reply contained
}

func newKeyring(prefix string, ops int) *keyring {
	ring := &keyring{prefix: prefix, left: ops}
	for i := range ring.used {
		ring.replace(i)
	}
	return ring
}

func (r *keyring) replace(i int) {
	r.used[i] = &lockKey{name: r.prefix + strconv.Itoa(len(r.all))}
	r.all = append(r.all, r.used[i])
}

// next returns a key for one more command, or false if enough commands have been sent.
func (r *keyring) next(random *rand.Rand) (*lockKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		return nil, false
	}
	r.left--
	i := random.IntN(keysAtATime)
	if r.used[i].handed == opsPerKey || r.used[i].hasManyLost() {
		r.replace(i)
	}
	r.used[i].handed++
	return r.used[i], true
}

func (k *lockKey) hasManyLost() bool {
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
	case verb == verbSwap, verb == verbCompareSet && one.reply == int64(1), verb.writesValue() && isText:
		k.seen = one.op.value
	}
}

func (k *lockKey) lastSeen() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}
