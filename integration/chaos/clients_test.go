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

// result is a client's interpretation of a reply.
type result int

const (
	resultUnknown result = iota // an error or no reply: the command may take effect, even later
	resultNo
	resultYes
)

// locker is one of the ways to lock. A validity counts from the time at which the client sent the
// command.
type locker interface {
	lock(key, token string, lease time.Duration) (result, time.Duration)
	extend(key, token string, lease time.Duration) (result, time.Duration)
	unlock(key, token string) result
	// slots returns the value of holding.slots for the last lock.
	slots() int
}

const (
	releaseScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	extendScript  = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
)

// connection is a client's connection to any of the proxies. If a proxy does not reply, the client
// connects to another proxy at random. In a fixed order, all clients would soon use the same proxy.
type connection struct {
	ledger *ledger
	addrs  []string
	index  int // index in addrs
	random *rand.Rand
	client *redistest.Client // nil if not connected
	// timeout limits the wait for a reply; zero means the default.
	timeout time.Duration
}

// do sends a command, and reports whether it got a reply that is not an error.
func (c *connection) do(words ...string) (reply any, ok bool) {
	reply, err := c.doOnce(words...)
	failure, isError := reply.(redistest.RespError)
	switch {
	case err != nil:
		c.disconnect()
		c.ledger.countReply(words[0], "no reply")
	case isError:
		first, _, _ := strings.Cut(string(failure), " ")
		c.ledger.countReply(words[0], first)
	default:
		c.ledger.countReply(words[0], "answered")
	}
	return reply, err == nil && !isError
}

// slots returns 0: all clients that do not override it lock exclusively.
func (c *connection) slots() int { return 0 }

func (c *connection) doOnce(words ...string) (reply any, err error) {
	if c.client == nil {
		if c.client, err = redistest.Dial(c.addrs[c.index], cmp.Or(c.timeout, replyTimeout)); err != nil {
			return nil, err
		}
	}
	return c.client.Do(words...)
}

func (c *connection) disconnect() {
	if c.client != nil {
		_ = c.client.Close() // the connection has failed already
	}
	c.client = nil
	if len(c.addrs) > 1 {
		c.index = (c.index + 1 + c.random.IntN(len(c.addrs)-1)) % len(c.addrs)
	}
}

// lockCommands locks with LOCK, EXTEND and UNLOCK, and sometimes waits for the lock.
type lockCommands struct {
	*connection
	random *rand.Rand
}

func (l lockCommands) lock(key, token string, lease time.Duration) (result, time.Duration) {
	words := []string{"LOCK", key, token, "PX", millis(lease)}
	if l.random.IntN(10) == 0 {
		return validity(l.do(append(words, "BLOCK", "200")...))
	}
	sent := time.Now()
	reply, ok := l.do(words...)
	answer, valid := validity(reply, ok)
	if answer == resultYes {
		l.ledger.recordLatency(time.Since(sent))
	}
	return answer, valid
}

func (l lockCommands) extend(key, token string, lease time.Duration) (result, time.Duration) {
	return validity(l.do("EXTEND", key, token, "PX", millis(lease)))
}

func (l lockCommands) unlock(key, token string) result {
	return resultOfInteger(l.do("UNLOCK", key, token))
}

// severalCommands locks with MLOCK, MEXTEND and MUNLOCK. It takes each key together with one of a
// few other keys, for which its clients also contend.
type severalCommands struct {
	*connection
	random *rand.Rand
	// otherKey is the other key of the last lock.
	otherKey string
}

// otherKeyCount is the number of other keys.
const otherKeyCount = 8

func (l *severalCommands) lock(key, token string, lease time.Duration) (result, time.Duration) {
	l.otherKey = "lock:beside:" + strconv.Itoa(l.random.IntN(otherKeyCount))
	words := []string{"MLOCK", "2", key, l.otherKey, token, "PX", millis(lease)}
	if l.random.IntN(2) == 0 {
		words[2], words[3] = words[3], words[2]
	}
	if l.random.IntN(3) == 0 {
		words = append(words, "BLOCK", "200")
	}
	return validity(l.do(words...))
}

func (l *severalCommands) extend(key, token string, lease time.Duration) (result, time.Duration) {
	return validity(l.do("MEXTEND", "2", key, l.otherKey, token, "PX", millis(lease)))
}

// unlock returns resultNo if at least one of the two keys was not held.
func (l *severalCommands) unlock(key, token string) result {
	reply, ok := l.do("MUNLOCK", "2", key, l.otherKey, token)
	switch {
	case !ok:
		return resultUnknown
	case reply == any(int64(2)):
		return resultYes
	default:
		return resultNo
	}
}

// validity interprets a reply to LOCK, MLOCK, EXTEND or MEXTEND.
func validity(reply any, ok bool) (result, time.Duration) {
	ms, granted := reply.(int64)
	switch {
	case !ok:
		return resultUnknown, 0
	case granted:
		return resultYes, time.Duration(ms) * time.Millisecond
	default:
		return resultNo, 0
	}
}

// resultOfInteger interprets a reply of 1 or 0.
func resultOfInteger(reply any, ok bool) result {
	switch {
	case !ok:
		return resultUnknown
	case reply == any(int64(1)):
		return resultYes
	default:
		return resultNo
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// ordinaryCommands locks as on a single Redis, with SET NX PX and scripts that compare.
type ordinaryCommands struct{ *connection }

func (o ordinaryCommands) lock(key, token string, lease time.Duration) (result, time.Duration) {
	reply, ok := o.do("SET", key, token, "NX", "PX", millis(lease))
	switch {
	case !ok:
		return resultUnknown, 0
	case reply == nil:
		return resultNo, 0
	default:
		return resultYes, guaranteedValidity(lease)
	}
}

func (o ordinaryCommands) extend(key, token string, lease time.Duration) (result, time.Duration) {
	return resultOfInteger(o.do("EVAL", extendScript, "1", key, token, millis(lease))), guaranteedValidity(lease)
}

func (o ordinaryCommands) unlock(key, token string) result {
	return resultOfInteger(o.do("EVAL", releaseScript, "1", key, token))
}

// guaranteedValidity returns the part of a lease on which a client may rely, given the drift of
// clocks.
func guaranteedValidity(lease time.Duration) time.Duration {
	return lease - lease/100 - 2*time.Millisecond
}

// redsyncLocks locks with redsync, directly on the masters.
type redsyncLocks struct {
	mutexFactory *redsync.Redsync
	mutex        *redsync.Mutex // mutex of the last token
}

func (r *redsyncLocks) lock(key, token string, lease time.Duration) (result, time.Duration) {
	sent := time.Now()
	r.mutex = r.mutexFactory.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1), redsync.WithTimeoutFactor(0.02),
		redsync.WithGenValueFunc(func() (string, error) { return token, nil }))
	var taken *redsync.ErrTaken
	switch err := r.mutex.Lock(); {
	case errors.As(err, &taken):
		return resultNo, 0
	case err != nil:
		return resultUnknown, 0
	}
	return resultYes, r.mutex.Until().Sub(sent)
}

func (r *redsyncLocks) extend(_, _ string, _ time.Duration) (result, time.Duration) {
	sent := time.Now()
	if ok, err := r.mutex.Extend(); !ok || err != nil {
		return resultUnknown, 0
	}
	return resultYes, r.mutex.Until().Sub(sent)
}

func (r *redsyncLocks) slots() int { return 0 }

func (r *redsyncLocks) unlock(_, _ string) result {
	if ok, err := r.mutex.Unlock(); !ok || err != nil {
		return resultUnknown
	}
	return resultYes
}

// usage is the way in which a client uses locks.
type usage struct {
	keys     []string
	lease    time.Duration
	maxHold  time.Duration // maximum time until the client extends or releases the lock
	maxPause time.Duration // maximum pause between two turns
}

type worker struct {
	ledger *ledger
	locker locker
	usage  usage
	number int
	random *rand.Rand
}

// client is one of the clients of a group.
type client interface {
	runTurn()
	waitForNextTurn() // waits between two turns
}

// clientGroup holds clients that work until stop is called.
type clientGroup struct {
	stopping atomic.Bool
	workers  sync.WaitGroup
}

func (c *clientGroup) add(w client) {
	c.workers.Go(func() {
		for !c.stopping.Load() {
			w.runTurn()
			w.waitForNextTurn()
		}
	})
}

// stop ends the group; every client finishes its turn.
func (c *clientGroup) stop() {
	c.stopping.Store(true)
	c.workers.Wait()
}

// runTurn requests a lock once. If the lock is granted, runTurn holds it for a while and releases
// it.
func (w *worker) runTurn() {
	key, token := w.usage.keys[w.random.IntN(len(w.usage.keys))], w.ledger.newToken(w.number)
	sent := w.ledger.now()
	reply, valid := w.locker.lock(key, token, w.usage.lease)
	received := w.ledger.now()
	switch reply {
	case resultYes:
		w.ledger.recordGrant(holding{key, token, received, sent + valid, w.locker.slots()}, sent)
		w.holdLock(key, token, sent, sent+valid)
	case resultNo:
		w.ledger.recordSettled(token)
	}
}

// holdLock holds a lock and usually releases it.
func (w *worker) holdLock(key, token string, sent, until time.Duration) {
	w.sleep(w.usage.maxHold)
	for w.random.IntN(5) == 0 {
		until = w.extend(key, token, until)
		w.sleep(w.usage.maxHold)
	}
	if w.random.IntN(300) == 0 { // the client relies on the lock, but never releases it
		time.Sleep(until - w.ledger.now()) // until the validity expires
		w.ledger.recordEnd(token)
		return
	}
	w.ledger.recordEnd(token)
	w.release(key, token, sent, until)
}

func (w *worker) extend(key, token string, until time.Duration) time.Duration {
	sent := w.ledger.now()
	reply, valid := w.locker.extend(key, token, w.usage.lease)
	switch {
	case reply == resultNo && w.ledger.isLive(token):
		w.ledger.recordLoss(key, token, "an extension was refused")
	case reply == resultYes:
		until = max(until, sent+valid)
		w.ledger.recordExtension(token, until)
	}
	return until
}

// release releases a lock, and repeats the command if its result is unknown.
func (w *worker) release(key, token string, sent, until time.Duration) {
	for attempt := range 3 {
		switch w.locker.unlock(key, token) {
		case resultYes:
			w.ledger.recordSettled(token)
			w.extendReleased(key, token)
			return
		case resultNo:
			if attempt == 0 && w.ledger.now() < until && !w.ledger.mayBeForced(key, sent) {
				w.ledger.recordLoss(key, token, "a release found nothing")
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
	if reply, _ := w.locker.extend(key, token, w.usage.lease); reply == resultYes {
		w.ledger.recordRevival(key, token, "an extension was granted after its release")
		w.locker.unlock(key, token)
	}
}

func (w *worker) waitForNextTurn() { w.sleep(w.usage.maxPause) }

func (w *worker) sleep(limit time.Duration) { sleepUpTo(w.random, limit) }

// sleepUpTo waits for a random time of at most limit.
func sleepUpTo(random *rand.Rand, limit time.Duration) {
	time.Sleep(time.Duration(float64(limit) * random.Float64())) // the pace of a client
}

// numberedKeys returns n keys with a prefix.
func numberedKeys(prefix string, n int) []string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, i))
	}
	return keys
}
