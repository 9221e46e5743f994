//go:build integration

package moving

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// keysPerKind is the number of locks of each kind.
	keysPerKind = 4
	// clientsPerDialect is the number of clients of each dialect. One client of a direct dialect
	// uses the upstream until the first move.
	clientsPerDialect = 4
	// replyTimeout is the time that a client waits for a reply: longer than a fault lasts.
	replyTimeout = 20 * time.Second
	// shortTimeout is the time that a client of both proxies waits for a reply, because a proxy may
	// be stopped.
	shortTimeout = 3 * time.Second
)

// load is a group of clients that lock in all dialects, and their records.
type load struct {
	t         *testing.T
	addrs     []string
	upstream  string
	startedAt time.Time
	// directAllowed is set while clients with a direct connection to the upstream may continue.
	directAllowed, stopping atomic.Bool
	directClients, workers  sync.WaitGroup

	mu        sync.Mutex
	histories map[string]*holdings.History
	// versions holds a version for each key. If the state of a key without an expiry is unknown,
	// all clients use the next version.
	versions map[string]int
	// endedTokens holds the time from which a token must not hold a key.
	endedTokens map[string]lockEnd
	// moveStartedAt is the time at which the current move began, or zero. longestMove is the
	// duration of the longest move so far. A copied lease may expire later by the duration of the
	// move.
	moveStartedAt time.Time
	longestMove   time.Duration
	violations    []string
	replies       map[string]int
	dialectGrants map[string]int
	// The following fields hold the records of the current round.
	errors         map[string]int
	maxDuration    time.Duration
	slowestCommand string
	grants         int
}

func startLoad(t *testing.T, r *rig, seed uint64) *load {
	t.Helper()
	l := &load{
		t: t, addrs: r.addrs, upstream: r.upstream.Addr(), startedAt: time.Now(), histories: map[string]*holdings.History{},
		versions:    map[string]int{},
		endedTokens: map[string]lockEnd{}, replies: map[string]int{}, dialectGrants: map[string]int{},
		errors: map[string]int{},
	}
	l.directAllowed.Store(true)
	seedClient := kit.Connect(t, r.proxies[0])
	for n := range keysPerKind {
		kit.Do(t, seedClient, "RPUSH", l.key("list", n), "first")
	}
	for d, dialect := range dialects {
		for i := range clientsPerDialect {
			c := &client{load: l, dialect: dialect, name: fmt.Sprintf("%s/%d",
				strings.ReplaceAll(dialect.name, " ", ""), i),
				random: rand.New(rand.NewPCG(seed, uint64(d*clientsPerDialect+i))), timeout: replyTimeout}
			switch {
			case i == 0 && dialect.direct:
				l.directClients.Go(func() { c.run(func() bool { return l.directAllowed.Load() && !l.stopping.Load() }, l.upstream) })
			case i == clientsPerDialect-1:
				c.timeout = shortTimeout
				l.workers.Go(func() { c.run(func() bool { return !l.stopping.Load() }, l.addrs...) })
			default:
				l.workers.Go(func() { c.run(func() bool { return !l.stopping.Load() }, l.addrs[i%len(l.addrs)]) })
			}
		}
	}
	return l
}

func (l *load) now() time.Duration { return time.Since(l.startedAt) }

// stopDirectClients stops the clients with direct connections to the upstream.
func (l *load) stopDirectClients() {
	l.directAllowed.Store(false)
	l.directClients.Wait()
}

// key returns the key of a lock, with its current version.
func (l *load) key(kind string, n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprintf("lock:%s:%d", kind, n)
	return fmt.Sprintf("%s:%d", name, l.versions[name])
}

// retire lets all clients use the next version of a key. It returns false if key is outdated.
func (l *load) retire(kind string, n int, key string) bool {
	if l.key(kind, n) != key {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[fmt.Sprintf("lock:%s:%d", kind, n)]++
	return true
}

func (l *load) history(key string) *holdings.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.histories[key] == nil {
		l.histories[key] = holdings.HistorySince(l.startedAt)
	}
	return l.histories[key]
}

func (l *load) addViolation(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, fmt.Sprintf("%v: ", l.now().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (l *load) countReply(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies[kind]++
}

// round holds the records of one round.
type round struct {
	errors         map[string]int
	maxDuration    time.Duration
	slowestCommand string
	grants         int
	violations     []string
}

// takeRound returns the records since its last call.
func (l *load) takeRound() round {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := round{l.errors, l.maxDuration, l.slowestCommand, l.grants, l.violations}
	l.errors, l.maxDuration, l.slowestCommand, l.grants, l.violations = map[string]int{}, 0, "", 0, nil
	return records
}

// stop lets all clients finish their turns, and returns all overlaps.
func (l *load) stop() (grants int, overlaps []string) {
	l.stopping.Store(true)
	l.directClients.Wait()
	l.workers.Wait()
	for key, history := range l.histories {
		grants += history.Count()
		for _, overlap := range history.Overlaps() {
			overlaps = append(overlaps, key+": "+overlap.String())
		}
	}
	return grants, overlaps
}

// client is a client that locks in one dialect.
type client struct {
	*load
	dialect *dialect
	name    string
	random  *rand.Rand
	timeout time.Duration
	conns   map[string]*redistest.Client
	// addr is the address to which the client currently sends its commands.
	addr string
}

var (
	errExpected = errors.New("the reply is the expected error")
	errRefused  = errors.New("the reply is an error")
)

func (c *client) do(words ...string) (any, error) { return c.request("", true, words...) }

// doExpecting does the same as do, but returns errExpected for an expected kind of error.
func (c *client) doExpecting(expected string, words ...string) (any, error) {
	return c.request(expected, true, words...)
}

// doBlocking does the same as do, for a command that may block. It does not record the command's
// duration.
func (c *client) doBlocking(words ...string) (any, error) { return c.request("", false, words...) }

func (c *client) request(expected string, isTimed bool, words ...string) (any, error) {
	conn := c.conns[c.addr]
	sent := time.Now()
	var reply any
	var err error
	if conn == nil {
		if conn, err = redistest.Dial(c.addr, c.timeout); err == nil {
			c.conns[c.addr] = conn
		}
	}
	if err == nil {
		reply, err = conn.Do(words...)
	}
	elapsed := time.Since(sent)
	refusal, isError := reply.(redistest.RespError)
	c.mu.Lock()
	defer c.mu.Unlock()
	if isTimed && elapsed > c.maxDuration && c.addr != c.upstream {
		c.maxDuration, c.slowestCommand = elapsed, fmt.Sprintf("%s of %s", words[0], c.name)
	}
	switch {
	case err != nil:
		if conn != nil {
			_ = conn.Close()
		}
		delete(c.conns, c.addr)
		kind := "connection failed"
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			kind = "no answer in " + c.timeout.String()
		}
		c.errors[fmt.Sprintf("%s: %s", words[0], kind)]++
		return nil, err
	case isError && expected != "" && strings.HasPrefix(string(refusal), expected):
		c.replies[words[0]+" "+expected]++
		return nil, errExpected
	case isError:
		c.errors[fmt.Sprintf("%s: %s", words[0], refusal)]++
		_ = conn.Close() // the connection may be within a transaction
		delete(c.conns, c.addr)
		return nil, errRefused
	}
	return reply, nil
}

func (c *client) run(running func() bool, addrs ...string) {
	c.conns = map[string]*redistest.Client{}
	defer func() {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
	}()
	for turn := 0; running(); turn++ {
		c.addr = addrs[c.random.IntN(len(addrs))]
		c.runTurn(addrs, fmt.Sprint(c.name, "-", turn))
		// The sleep sets the pace of a client.
		time.Sleep(time.Duration(c.random.Int64N(int64(30 * time.Millisecond))))
	}
}

// runTurn requests a lock once, holds it for a while if it is granted, and usually releases it.
func (c *client) runTurn(addrs []string, token string) {
	n := c.random.IntN(keysPerKind)
	d, key := c.dialect, c.key(c.dialect.kind, n)
	abandonKey := func() {
		if d.fragile && c.retire(d.kind, n, key) && d.kind == "list" {
			next := c.key(d.kind, n)
			if _, err := c.do("RPUSH", next, token+"-first"); err != nil {
				c.countReply("a list without its element")
			}
		}
	}
	if d.holders != nil && c.random.IntN(3) == 0 {
		c.checkReleased(key)
	}
	sentAt := c.now()
	validity, err := d.take(c, key, token)
	received := c.now()
	switch {
	case err != nil:
		abandonKey()
		time.Sleep(50 * time.Millisecond) // sets the pace of a client
		return
	case validity == 0:
		return
	}
	c.mu.Lock()
	c.grants++
	c.countGrant(d)
	c.mu.Unlock()
	reliedFrom := received
	until, latest := sentAt+validity-slack, received+max(validity, d.lease)+slack
	abandons := d.lease != 0 && d.lease != timestampLease && c.random.IntN(8) == 0
	holdTime := time.Duration(c.random.Int64N(int64(30 * time.Millisecond)))
	if c.random.IntN(6) == 0 {
		holdTime = time.Duration(c.random.Int64N(int64(2 * time.Second)))
	}
	for end := received + holdTime; ; {
		c.addr = addrs[c.random.IntN(len(addrs))]
		if d.extend != nil && c.random.IntN(3) == 0 {
			sent := c.now()
			extended, err := d.extend(c, key, token)
			after := c.now()
			if after < until && err == nil && !extended {
				c.addViolation("LOST: %s: %s of %s is not extended, %v after it was granted and %v before its end", d.name,
					key, token, after-received, until-after)
			}
			latest = max(latest, after+d.lease+slack)
			// If the lock was not extended before it expired, another client may have held it in
			// between.
			if extended && err == nil && after < until {
				until = sent + d.lease - slack
			}
		} else {
			held, err := d.holds(c, key, token)
			if after := c.now(); after < until && err == nil && !held {
				c.addViolation("LOST: %s: %s of %s is not held, %v after it was granted and %v before its end", d.name, key,
					token, after-received, until-after)
			}
		}
		if now := c.now(); now >= min(end, until) {
			break
		}
		// The sleep sets the pace of a client.
		time.Sleep(min(max(end-c.now(), time.Millisecond), 200*time.Millisecond))
	}
	if abandons {
		c.addHolding(key, holdings.Holding{Token: token, From: reliedFrom, To: until})
		c.recordEnd(token, lockEnd{latest, true})
		return
	}
	// When a later release arrives, the lock may belong to another client.
	if d.lease == timestampLease && until-c.now() < timestampLease/2 {
		c.addHolding(key, holdings.Holding{Token: token, From: reliedFrom, To: until})
		return
	}
	sent := c.now()
	c.addHolding(key, holdings.NewHolding(token, reliedFrom, until, sent))
	released, err := d.release(c, key, token)
	after := c.now()
	switch {
	case err != nil:
		c.recordEnd(token, lockEnd{latest, true})
		abandonKey()
	case !released && after < until:
		c.addViolation("LOST: %s: %s of %s was not there to be given back, %v after it was granted and %v before its end",
			d.name, key, token, after-received, until-after)
	default:
		c.recordEnd(token, lockEnd{after, false})
	}
}

func (c *client) countGrant(d *dialect) { c.load.dialectGrants[d.name]++ }

func (c *client) addHolding(key string, holding holdings.Holding) {
	if holding.From < holding.To {
		c.history(key).Add(holding)
	}
}

// lockEnd is the end of a lock. expired is set if the lock expires at that time; otherwise its
// client released it.
type lockEnd struct {
	at      time.Duration
	expired bool
}

// beginMove records the beginning of a move. The returned function records its end.
func (l *load) beginMove() (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveStartedAt = time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.longestMove, l.moveStartedAt = max(l.longestMove, time.Since(l.moveStartedAt)), time.Time{}
	}
}

// maxDelay returns the longest time by which moves may have delayed the expiry of a lease.
func (l *load) maxDelay() time.Duration {
	if l.moveStartedAt.IsZero() {
		return l.longestMove
	}
	return max(l.longestMove, time.Since(l.moveStartedAt))
}

// recordEnd records the end of the lock of a token.
func (c *client) recordEnd(token string, end lockEnd) {
	if c.dialect.kind == "list" || c.dialect.kind == "dated" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endedTokens[token] = end
}

// checkReleased records a violation if a key has a token whose lock was released or has expired.
func (c *client) checkReleased(key string) {
	sent := c.now()
	tokens, err := c.dialect.holders(c, key)
	if err != nil {
		return
	}
	for _, token := range tokens {
		c.mu.Lock()
		end, ended := c.endedTokens[token]
		if end.expired {
			end.at += c.maxDelay()
		}
		c.mu.Unlock()
		if ended && end.at < sent {
			c.addViolation("REVIVED: %s: %s of %s is there %v after its end", c.dialect.name, key, token, sent-end.at)
		}
	}
}
