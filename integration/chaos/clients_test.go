//go:build integration

package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"

	"redlock-proxy/internal/redistest"
)

// answer is a client's interpretation of a reply.
type answer int

const (
	unknown answer = iota // an error or no reply: may have been done, or may be later
	no
	yes
)

// locker is one of the ways to lock. A validity counts from before the command was sent.
type locker interface {
	lock(key, token string, lease time.Duration) (answer, time.Duration)
	extend(key, token string, lease time.Duration) (answer, time.Duration)
	unlock(key, token string) answer
}

const (
	releaseIfOwn = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendIfOwn  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
)

// connection is a client's connection to any of the proxies. If a proxy does not answer, it
// connects to another proxy at random: in a fixed order, all clients would soon be at one proxy.
type connection struct {
	ledger *ledger
	addrs  []string
	at     int // index in addrs
	random *rand.Rand
	client *redistest.Client // nil: none
	// patience limits the wait for a reply; zero means the default.
	patience time.Duration
}

// do sends a command, and reports whether it got a reply that is not an error.
func (c *connection) do(words ...string) (reply any, ok bool) {
	reply, err := c.try(words...)
	failure, bad := reply.(redistest.RespError)
	switch {
	case err != nil:
		c.hangUp()
		c.ledger.count(words[0], "no reply")
	case bad:
		first, _, _ := strings.Cut(string(failure), " ")
		c.ledger.count(words[0], first)
	default:
		c.ledger.count(words[0], "answered")
	}
	return reply, err == nil && !bad
}

func (c *connection) try(words ...string) (reply any, err error) {
	if c.client == nil {
		if c.client, err = redistest.Dial(c.addrs[c.at], cmp.Or(c.patience, patience)); err != nil {
			return nil, err
		}
	}
	return c.client.Do(words...)
}

func (c *connection) hangUp() {
	if c.client != nil {
		_ = c.client.Close() // the connection has failed already
	}
	c.client = nil
	if len(c.addrs) > 1 {
		c.at = (c.at + 1 + c.random.IntN(len(c.addrs)-1)) % len(c.addrs)
	}
}

// lockCommands locks with LOCK, EXTEND and UNLOCK, and sometimes waits for the lock.
type lockCommands struct {
	*connection
	random *rand.Rand
}

func (l lockCommands) lock(key, token string, lease time.Duration) (answer, time.Duration) {
	words := []string{"LOCK", key, token, "PX", millis(lease)}
	if l.random.IntN(10) == 0 {
		return validity(l.do(append(words, "BLOCK", "200")...))
	}
	sent := time.Now()
	reply, ok := l.do(words...)
	answer, valid := validity(reply, ok)
	if answer == yes {
		l.ledger.latency(time.Since(sent))
	}
	return answer, valid
}

func (l lockCommands) extend(key, token string, lease time.Duration) (answer, time.Duration) {
	return validity(l.do("EXTEND", key, token, "PX", millis(lease)))
}

func (l lockCommands) unlock(key, token string) answer {
	return isOne(l.do("UNLOCK", key, token))
}

// validity interprets the reply to LOCK and EXTEND.
func validity(reply any, ok bool) (answer, time.Duration) {
	ms, granted := reply.(int64)
	switch {
	case !ok:
		return unknown, 0
	case granted:
		return yes, time.Duration(ms) * time.Millisecond
	default:
		return no, 0
	}
}

// isOne interprets a reply of 1 or 0.
func isOne(reply any, ok bool) answer {
	switch {
	case !ok:
		return unknown
	case reply == any(int64(1)):
		return yes
	default:
		return no
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// ordinaryCommands locks as on a single Redis, with SET NX PX and scripts that compare.
type ordinaryCommands struct{ *connection }

func (o ordinaryCommands) lock(key, token string, lease time.Duration) (answer, time.Duration) {
	reply, ok := o.do("SET", key, token, "NX", "PX", millis(lease))
	switch {
	case !ok:
		return unknown, 0
	case reply == nil:
		return no, 0
	default:
		return yes, reliable(lease)
	}
}

func (o ordinaryCommands) extend(key, token string, lease time.Duration) (answer, time.Duration) {
	return isOne(o.do("EVAL", extendIfOwn, "1", key, token, millis(lease))), reliable(lease)
}

func (o ordinaryCommands) unlock(key, token string) answer {
	return isOne(o.do("EVAL", releaseIfOwn, "1", key, token))
}

// reliable returns the part of a lease on which a client may rely, given the drift of clocks.
func reliable(lease time.Duration) time.Duration { return lease - lease/100 - 2*time.Millisecond }

// redsyncLocks locks with redsync, directly on the masters.
type redsyncLocks struct {
	sync  *redsync.Redsync
	mutex *redsync.Mutex // of the last token
}

func (r *redsyncLocks) lock(key, token string, lease time.Duration) (answer, time.Duration) {
	sent := time.Now()
	r.mutex = r.sync.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1), redsync.WithTimeoutFactor(0.02),
		redsync.WithGenValueFunc(func() (string, error) { return token, nil }))
	var taken *redsync.ErrTaken
	switch err := r.mutex.Lock(); {
	case errors.As(err, &taken):
		return no, 0
	case err != nil:
		return unknown, 0
	}
	return yes, r.mutex.Until().Sub(sent)
}

func (r *redsyncLocks) extend(_, _ string, _ time.Duration) (answer, time.Duration) {
	sent := time.Now()
	if ok, err := r.mutex.Extend(); !ok || err != nil {
		return unknown, 0
	}
	return yes, r.mutex.Until().Sub(sent)
}

func (r *redsyncLocks) unlock(_, _ string) answer {
	if ok, err := r.mutex.Unlock(); !ok || err != nil {
		return unknown
	}
	return yes
}

// manner is the way in which a client uses locks.
type manner struct {
	keys  []string
	lease time.Duration
	hold  time.Duration // at most, unless it extends
	pause time.Duration // between two tries, at most
}

type worker struct {
	ledger *ledger
	locker locker
	manner manner
	number int
	random *rand.Rand
}

// client is one of the clients of a crowd.
type client interface {
	turn()
	rest() // between two turns
}

// crowd holds clients that work until they are stopped.
type crowd struct {
	over    atomic.Bool
	workers sync.WaitGroup
}

func (c *crowd) add(w client) {
	c.workers.Go(func() {
		for !c.over.Load() {
			w.turn()
			w.rest()
		}
	})
}

// stop ends the crowd; every client finishes its turn.
func (c *crowd) stop() {
	c.over.Store(true)
	c.workers.Wait()
}

// turn requests a lock once. If the lock is granted, turn holds it for a while and releases it.
func (w *worker) turn() {
	key, token := w.manner.keys[w.random.IntN(len(w.manner.keys))], w.ledger.newToken(w.number)
	sent := w.ledger.now()
	got, valid := w.locker.lock(key, token, w.manner.lease)
	received := w.ledger.now()
	switch got {
	case yes:
		w.ledger.granted(holding{key, token, received, sent + valid}, sent)
		w.use(key, token, sent, sent+valid)
	case no:
		w.ledger.settled(token)
	}
}

// use holds a lock and, mostly, releases it.
func (w *worker) use(key, token string, asked, until time.Duration) {
	w.sleep(w.manner.hold)
	for w.random.IntN(5) == 0 {
		until = w.extend(key, token, until)
		w.sleep(w.manner.hold)
	}
	if w.random.IntN(300) == 0 { // it never releases the lock, but relies on it
		time.Sleep(until - w.ledger.now()) // until the lease has ended
		w.ledger.ended(token)
		return
	}
	w.ledger.ended(token)
	w.release(key, token, asked, until)
}

func (w *worker) extend(key, token string, until time.Duration) time.Duration {
	sent := w.ledger.now()
	got, valid := w.locker.extend(key, token, w.manner.lease)
	switch {
	case got == no && w.ledger.isLive(token):
		w.ledger.lose(key, token, "an extension was refused")
	case got == yes:
		until = max(until, sent+valid)
		w.ledger.extended(token, until)
	}
	return until
}

// release releases a lock, and repeats the command if it gets no reply.
func (w *worker) release(key, token string, asked, until time.Duration) {
	for try := range 3 {
		switch w.locker.unlock(key, token) {
		case yes:
			w.ledger.settled(token)
			w.extendReleased(key, token)
			return
		case no:
			if try == 0 && w.ledger.now() < until && !w.ledger.mayBeForced(key, asked) {
				w.ledger.lose(key, token, "a release found nothing")
			}
			return
		}
	}
}

// extendReleased sometimes tries to extend a released lock, which must fail.
func (w *worker) extendReleased(key, token string) {
	if _, isRedsync := w.locker.(*redsyncLocks); isRedsync || w.random.IntN(30) > 0 {
		return
	}
	if got, _ := w.locker.extend(key, token, w.manner.lease); got == yes {
		w.ledger.revive(key, token, "an extension was granted after its release")
		w.locker.unlock(key, token)
	}
}

func (w *worker) rest() { w.sleep(w.manner.pause) }

func (w *worker) sleep(limit time.Duration) { nap(w.random, limit) }

// nap waits for a random time of at most limit.
func nap(random *rand.Rand, limit time.Duration) {
	time.Sleep(time.Duration(float64(limit) * random.Float64())) // the pace of a client
}

// names returns n keys with a prefix.
func names(prefix string, n int) []string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, i))
	}
	return keys
}
