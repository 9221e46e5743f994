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
	// keysOfKind is the number of locks of each kind.
	keysOfKind = 4
	// clientsOf is the number of clients of each dialect; one uses the upstream until the first
	// move.
	clientsOf = 4
	// patience is the time that a client waits for a reply: longer than a fault lasts.
	patience = 20 * time.Second
	// hasty is the time that a client of both proxies waits, because one may be stopped.
	hasty = 3 * time.Second
)

// load is a group of clients that lock in all dialects, and their records.
type load struct {
	t        *testing.T
	addrs    []string
	upstream string
	began    time.Time
	// atUpstream is set while clients with a direct connection to the upstream may continue.
	atUpstream, over atomic.Bool
	direct, workers  sync.WaitGroup

	mu        sync.Mutex
	histories map[string]*holdings.History
	// versions has a version for each key: if the state of a key without an expiry is unknown, all
	// clients use the next version.
	versions map[string]int
	// gone has the time from which a token must not hold a key.
	gone map[string]ending
	// moveBegan is when the present move began, or zero; longestMove is the duration of the longest
	// one so far. A lease that is copied may expire later by that time.
	moveBegan   time.Time
	longestMove time.Duration
	wrong       []string
	replies     map[string]int
	dialect     map[string]int
	// The following fields are those of the current round.
	errors    map[string]int
	slowest   time.Duration
	slowestOf string
	grants    int
}

func startLoad(t *testing.T, r *rig, seed uint64) *load {
	t.Helper()
	l := &load{
		t: t, addrs: r.addrs, upstream: r.upstream.Addr(), began: time.Now(), histories: map[string]*holdings.History{},
		versions: map[string]int{},
		gone:     map[string]ending{}, replies: map[string]int{}, dialect: map[string]int{},
		errors: map[string]int{},
	}
	l.atUpstream.Store(true)
	seeds := kit.Connect(t, r.proxies[0])
	for n := range keysOfKind {
		kit.Do(t, seeds, "RPUSH", l.key("list", n), "first")
	}
	for d, dialect := range dialects {
		for i := range clientsOf {
			c := &client{load: l, dialect: dialect, name: fmt.Sprintf("%s/%d",
				strings.ReplaceAll(dialect.name, " ", ""), i),
				random: rand.New(rand.NewPCG(seed, uint64(d*clientsOf+i))), patience: patience}
			switch {
			case i == 0 && dialect.direct:
				l.direct.Go(func() { c.run(func() bool { return l.atUpstream.Load() && !l.over.Load() }, l.upstream) })
			case i == clientsOf-1:
				c.patience = hasty
				l.workers.Go(func() { c.run(func() bool { return !l.over.Load() }, l.addrs...) })
			default:
				l.workers.Go(func() { c.run(func() bool { return !l.over.Load() }, l.addrs[i%len(l.addrs)]) })
			}
		}
	}
	return l
}

func (l *load) now() time.Duration { return time.Since(l.began) }

// leaveUpstream stops the clients with direct connections to the upstream.
func (l *load) leaveUpstream() {
	l.atUpstream.Store(false)
	l.direct.Wait()
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
		l.histories[key] = holdings.HistorySince(l.began)
	}
	return l.histories[key]
}

func (l *load) addWrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf("%v: ", l.now().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (l *load) note(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies[kind]++
}

// round holds the records of one round.
type round struct {
	errors    map[string]int
	slowest   time.Duration
	slowestOf string
	grants    int
	wrong     []string
}

// take returns the records since its last call.
func (l *load) take() round {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := round{l.errors, l.slowest, l.slowestOf, l.grants, l.wrong}
	l.errors, l.slowest, l.slowestOf, l.grants, l.wrong = map[string]int{}, 0, "", 0, nil
	return seen
}

// stop lets all clients finish their turns, and returns all overlaps.
func (l *load) stop() (grants int, found []string) {
	l.over.Store(true)
	l.direct.Wait()
	l.workers.Wait()
	for key, history := range l.histories {
		grants += history.Count()
		for _, one := range history.Overlaps() {
			found = append(found, key+": "+one.String())
		}
	}
	return grants, found
}

// client is a client that locks in one dialect.
type client struct {
	*load
	dialect  *dialect
	name     string
	random   *rand.Rand
	patience time.Duration
	conns    map[string]*redistest.Client
	// at is the address to which the client currently sends its commands.
	at string
}

var (
	errUnless  = errors.New("it was answered with an error that was foreseen")
	errRefused = errors.New("it was answered with an error")
)

func (c *client) do(words ...string) (any, error) { return c.ask("", true, words...) }

// doUnless is do with an exception: for one kind of error it returns errUnless.
func (c *client) doUnless(kind string, words ...string) (any, error) {
	return c.ask(kind, true, words...)
}

// doBlocking is do for a command that may block.
func (c *client) doBlocking(words ...string) (any, error) { return c.ask("", false, words...) }

func (c *client) ask(unless string, timed bool, words ...string) (any, error) {
	conn := c.conns[c.at]
	asked := time.Now()
	var reply any
	var err error
	if conn == nil {
		if conn, err = redistest.Dial(c.at, c.patience); err == nil {
			c.conns[c.at] = conn
		}
	}
	if err == nil {
		reply, err = conn.Do(words...)
	}
	took := time.Since(asked)
	refusal, refused := reply.(redistest.RespError)
	c.mu.Lock()
	defer c.mu.Unlock()
	if timed && took > c.slowest && c.at != c.upstream {
		c.slowest, c.slowestOf = took, fmt.Sprintf("%s of %s", words[0], c.name)
	}
	switch {
	case err != nil:
		if conn != nil {
			_ = conn.Close()
		}
		delete(c.conns, c.at)
		kind := "connection failed"
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			kind = "no answer in " + c.patience.String()
		}
		c.errors[fmt.Sprintf("%s: %s", words[0], kind)]++
		return nil, err
	case refused && unless != "" && strings.HasPrefix(string(refusal), unless):
		c.replies[words[0]+" "+unless]++
		return nil, errUnless
	case refused:
		c.errors[fmt.Sprintf("%s: %s", words[0], refusal)]++
		_ = conn.Close() // the connection may be within a transaction
		delete(c.conns, c.at)
		return nil, errRefused
	}
	return reply, nil
}

func (c *client) run(goesOn func() bool, addrs ...string) {
	c.conns = map[string]*redistest.Client{}
	defer func() {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
	}()
	for turn := 0; goesOn(); turn++ {
		c.at = addrs[c.random.IntN(len(addrs))]
		c.turn(addrs, fmt.Sprint(c.name, "-", turn))
		time.Sleep(time.Duration(c.random.Int64N(int64(30 * time.Millisecond)))) // the pace of a client
	}
}

// turn requests a lock once, holds it for a while if it is granted, and usually releases it.
func (c *client) turn(addrs []string, token string) {
	n := c.random.IntN(keysOfKind)
	d, key := c.dialect, c.key(c.dialect.kind, n)
	unsure := func() {
		if d.fragile && c.retire(d.kind, n, key) && d.kind == "list" {
			next := c.key(d.kind, n)
			if _, err := c.do("RPUSH", next, token+"-first"); err != nil {
				c.note("a list without its element")
			}
		}
	}
	if d.there != nil && c.random.IntN(3) == 0 {
		c.look(key)
	}
	asked := c.now()
	granted, err := d.take(c, key, token)
	received := c.now()
	switch {
	case err != nil:
		unsure()
		time.Sleep(50 * time.Millisecond) // the pace of a client
		return
	case granted == 0:
		return
	}
	c.mu.Lock()
	c.grants++
	c.dialect_(d)
	c.mu.Unlock()
	reliedFrom := received
	until, latest := asked+granted-slack, received+max(granted, d.lease)+slack
	leaves := d.lease != 0 && d.lease != datedLease && c.random.IntN(8) == 0
	keeps := time.Duration(c.random.Int64N(int64(30 * time.Millisecond)))
	if c.random.IntN(6) == 0 {
		keeps = time.Duration(c.random.Int64N(int64(2 * time.Second)))
	}
	for end := received + keeps; ; {
		c.at = addrs[c.random.IntN(len(addrs))]
		if d.extend != nil && c.random.IntN(3) == 0 {
			sent := c.now()
			extended, err := d.extend(c, key, token)
			after := c.now()
			if after < until && err == nil && !extended {
				c.addWrong("LOST: %s: %s of %s is not extended, %v after it was granted and %v before its end", d.name,
					key, token, after-received, until-after)
			}
			latest = max(latest, after+d.lease+slack)
			if extended && err == nil && after < until { // otherwise another client may have held the lock in between
				until = sent + d.lease - slack
			}
		} else {
			held, err := d.holds(c, key, token)
			if after := c.now(); after < until && err == nil && !held {
				c.addWrong("LOST: %s: %s of %s is not held, %v after it was granted and %v before its end", d.name, key,
					token, after-received, until-after)
			}
		}
		if now := c.now(); now >= min(end, until) {
			break
		}
		time.Sleep(min(max(end-c.now(), time.Millisecond), 200*time.Millisecond)) // the pace of a client
	}
	if leaves {
		c.add(key, holdings.Holding{Token: token, From: reliedFrom, To: until})
		c.forget(token, ending{latest, true})
		return
	}
	// When a later release arrives, the lock may belong to another client.
	if d.lease == datedLease && until-c.now() < datedLease/2 {
		c.add(key, holdings.Holding{Token: token, From: reliedFrom, To: until})
		return
	}
	sent := c.now()
	c.add(key, holdings.Relied(token, reliedFrom, until, sent))
	given, err := d.give(c, key, token)
	after := c.now()
	switch {
	case err != nil:
		c.forget(token, ending{latest, true})
		unsure()
	case !given && after < until:
		c.addWrong("LOST: %s: %s of %s was not there to be given back, %v after it was granted and %v before its end",
			d.name, key, token, after-received, until-after)
	default:
		c.forget(token, ending{after, false})
	}
}

func (c *client) dialect_(d *dialect) { c.load.dialect[d.name]++ }

func (c *client) add(key string, one holdings.Holding) {
	if one.From < one.To {
		c.history(key).Add(one)
	}
}

// ending is when a lock ended: it expired, or was released.
type ending struct {
	at      time.Duration
	expired bool
}

// moves notes the beginning of a move. The returned function notes its end.
func (l *load) moves() (ended func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveBegan = time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.longestMove, l.moveBegan = max(l.longestMove, time.Since(l.moveBegan)), time.Time{}
	}
}

// mayLast returns how much later than its TTL says a lease may expire, because it was moved.
func (l *load) mayLast() time.Duration {
	if l.moveBegan.IsZero() {
		return l.longestMove
	}
	return max(l.longestMove, time.Since(l.moveBegan))
}

// forget records when a lock of a token ended.
func (c *client) forget(token string, since ending) {
	if c.dialect.kind == "list" || c.dialect.kind == "dated" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone[token] = since
}

// look records an error if a client holds a key that it has released.
func (c *client) look(key string) {
	sent := c.now()
	tokens, err := c.dialect.there(c, key)
	if err != nil {
		return
	}
	for _, token := range tokens {
		c.mu.Lock()
		end, is := c.gone[token]
		if end.expired {
			end.at += c.mayLast()
		}
		c.mu.Unlock()
		if is && end.at < sent {
			c.addWrong("REVIVED: %s: %s of %s is there %v after its end", c.dialect.name, key, token, sent-end.at)
		}
	}
}
