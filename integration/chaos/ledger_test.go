//go:build integration

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// holding is the time during which a client may rely on a lock, by the test process' monotonic
// clock. It begins when the client receives the grant. It ends with the validity, counted from
// before the request, or when the client sends the release if that is earlier.
type holding struct {
	key, token string
	from, to   time.Duration
	// slots is the number of clients that may hold the lock together, unlimited, or 0 for an
	// exclusive lock.
	slots int
}

// unlimited is the number of slots of a lock with SHARED.
const unlimited = -1

// overlap is a violation: a client was granted a lock while another client could rely on it.
type overlap struct{ first, second holding }

func (o overlap) violation() violation {
	return violation{o.second.from, fmt.Sprintf("%s: %s held it from %v to %v, and %s from %v to %v", o.first.key,
		o.first.token, o.first.from,
		o.first.to, o.second.token, o.second.from, o.second.to)}
}

// overlaps returns every holding that begins within earlier holdings of the same key that exclude
// it, with the earlier holding that ends last.
func overlaps(holdings []holding) (list []overlap) {
	walkHoldings(holdings, func(h holding, together []holding) {
		if h.isExcludedBy(together) {
			last := slices.MaxFunc(together, func(a, b holding) int { return cmp.Compare(a.to, b.to) })
			list = append(list, overlap{last, h})
		}
	})
	return list
}

// walkHoldings calls visit with each holding, and with the earlier holdings of the same key that
// have not ended when it begins.
func walkHoldings(holdings []holding, visit func(h holding, together []holding)) {
	ordered := slices.SortedStableFunc(slices.Values(holdings), func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
	})
	var together []holding
	for _, h := range ordered {
		together = slices.DeleteFunc(together, func(earlier holding) bool { return earlier.key != h.key || earlier.to <= h.from })
		visit(h, together)
		together = append(together, h)
	}
}

// isExcludedBy reports whether a lock must not be granted while other clients hold it.
func (h holding) isExcludedBy(together []holding) bool {
	return len(together) > 0 && (h.slots == 0 || h.slots > 0 && len(together) >= h.slots ||
		slices.ContainsFunc(together, func(other holding) bool { return other.slots == 0 }))
}

func TestOverlaps(t *testing.T) {
	for _, test := range []struct {
		name     string
		holdings []holding
		want     []string // tokens of the holdings that began too early
	}{
		{"nobody", nil, nil},
		{"one after the other", []holding{{"k", "a", 0, 5, 0}, {"k", "b", 5, 9, 0}}, nil},
		{"two keys", []holding{{"k", "a", 0, 5, 0}, {"l", "b", 4, 9, 0}}, nil},
		{"b came while a held", []holding{{"k", "b", 4, 9, 0}, {"k", "a", 0, 5, 0}}, []string{"b"}},
		{"c came while a held, but not b", []holding{{"k", "a", 0, 9, 0}, {"k", "b", 1, 2, 0}, {"k", "c", 8, 10, 0}},
			[]string{"b", "c"}},
		{"readers", []holding{{"k", "a", 0, 9, unlimited}, {"k", "b", 1, 9, unlimited}, {"k", "c", 2, 9, unlimited}}, nil},
		{"the third of two slots", []holding{{"k", "a", 0, 9, 2}, {"k", "b", 1, 9, 2}, {"k", "c", 2, 9, 2}, {"k", "d", 9, 9, 2}},
			[]string{"c"}},
		{"a writer with a reader", []holding{{"k", "a", 0, 5, unlimited}, {"k", "b", 4, 9, 0}, {"k", "c", 8, 10, unlimited}},
			[]string{"b", "c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, o := range overlaps(test.holdings) {
				got = append(got, o.second.token)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// ledger records the clients' knowledge of their locks.
type ledger struct {
	startedAt time.Time
	// tokenPrefix is the beginning of every token of this ledger, and of no other token.
	tokenPrefix string

	// inspect, if set, returns the state of a key on the masters.
	inspect func(key string) string

	mu            sync.Mutex
	openHoldings  map[string]holding // by token, from the grant until the release begins
	endedHoldings []holding
	tokenCounts   map[int]int // number of tokens that each client has used
	// openTokens holds the numbers of the tokens that each client may still hold. The client's
	// other tokens were refused or released.
	openTokens   map[int]map[int]bool
	forceUnlocks map[string][]*forceUnlock // by key
	losses       map[string]violation      // by token
	revivals     map[string]violation      // by token
	grants       []time.Duration           // time at which each grant was received
	slotGrants   map[int]int               // number of grants, by the number of slots
	replyCounts  map[string]map[string]int // number of replies of each kind, by command
	latencies    []time.Duration           // duration of each granted LOCK
}

// forceUnlock is an operator's FORCEUNLOCK of a key. It may remove every lock that was requested
// before the time in the field to.
type forceUnlock struct {
	from, to time.Duration
	// tokens lists the tokens of the locks that were live when the FORCEUNLOCK was sent.
	tokens []string
}

// violation describes a violated property, or another event of a run, and its time.
type violation struct {
	at   time.Duration
	text string
}

func (v violation) String() string {
	return fmt.Sprintf("at %v: %s", v.at.Round(time.Millisecond), v.text)
}

func newLedger() *ledger {
	return &ledger{
		startedAt: time.Now(), tokenPrefix: fmt.Sprintf("chaos-%08x-", rand.Uint32()), openHoldings: map[string]holding{},
		tokenCounts: map[int]int{},
		openTokens:  map[int]map[int]bool{}, losses: map[string]violation{}, revivals: map[string]violation{},
		replyCounts: map[string]map[string]int{}, forceUnlocks: map[string][]*forceUnlock{}, slotGrants: map[int]int{},
	}
}

// now returns the time since the ledger began.
func (l *ledger) now() time.Duration { return time.Since(l.startedAt) }

// newToken returns a token that was never used.
func (l *ledger) newToken(client int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokenCounts[client]++
	if l.openTokens[client] == nil {
		l.openTokens[client] = map[int]bool{}
	}
	l.openTokens[client][l.tokenCounts[client]] = true
	return fmt.Sprint(l.tokenPrefix, client, "-", l.tokenCounts[client])
}

// tokenIn returns the token at the end of a master's value, or "" if the value has no token of this
// ledger.
func (l *ledger) tokenIn(value string) string {
	if start := strings.LastIndex(value, l.tokenPrefix); start >= 0 {
		return value[start:]
	}
	return ""
}

// parseToken returns the client and the number in a token.
func (l *ledger) parseToken(token string) (client, number int) {
	clientText, numberText, _ := strings.Cut(strings.TrimPrefix(token, l.tokenPrefix), "-")
	client, _ = strconv.Atoi(clientText)
	number, _ = strconv.Atoi(numberText)
	return client, number
}

// recordSettled records a token that was refused or released. The token must not be held now or
// later.
func (l *ledger) recordSettled(token string) {
	client, number := l.parseToken(token)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.openTokens[client], number)
}

// recordGrant records a new grant. The lock may have been removed already if it was requested
// before the reply to an operator's FORCEUNLOCK.
func (l *ledger) recordGrant(h holding, sent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = append(l.grants, h.from)
	l.slotGrants[h.slots]++
	if !l.hasLaterForceUnlock(h.key, sent) {
		l.openHoldings[h.token] = h
	}
}

// mayBeForced reports whether an operator may have removed a lock that was requested at this time.
func (l *ledger) mayBeForced(key string, sent time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasLaterForceUnlock(key, sent)
}

// hasLaterForceUnlock does the same as mayBeForced. The caller holds mu.
func (l *ledger) hasLaterForceUnlock(key string, sent time.Duration) bool {
	return slices.ContainsFunc(l.forceUnlocks[key], func(f *forceUnlock) bool { return sent < f.to })
}

// beginForceUnlock records a FORCEUNLOCK that is about to be sent. From now on, clients that
// requested the key before the reply to the FORCEUNLOCK cannot rely on the lock.
func (l *ledger) beginForceUnlock(key string) *forceUnlock {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &forceUnlock{from: now, to: math.MaxInt64}
	l.forceUnlocks[key] = append(l.forceUnlocks[key], f)
	for token, h := range l.openHoldings {
		if h.key == key {
			f.tokens = append(f.tokens, token)
			l.endHolding(token, now)
		}
	}
	return f
}

// forceUnlockTimeout limits the time for which a FORCEUNLOCK may still take effect after an error,
// or after its proxy has ended. The masters refuse its ballot 600 ms after the ballot began.
const forceUnlockTimeout = time.Second

// endForceUnlock records the reply to a FORCEUNLOCK. Locks that it has removed must not reappear.
// If the outcome is unknown, they may.
func (l *ledger) endForceUnlock(f *forceUnlock, isKnown bool) {
	now := l.now()
	if isKnown {
		for _, token := range f.tokens {
			l.recordSettled(token)
		}
	} else {
		now += forceUnlockTimeout
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.to = now
}

// recordExtension records that a client may rely on a lock for longer.
func (l *ledger) recordExtension(token string, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.openHoldings[token]; ok {
		h.to = max(h.to, until)
		l.openHoldings[token] = h
	}
}

// recordEnd records that a client begins to release a lock, or no longer relies on it.
func (l *ledger) recordEnd(token string) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endHolding(token, now)
}

// endHolding does the same as recordEnd. The caller holds mu.
func (l *ledger) endHolding(token string, now time.Duration) {
	h := l.openHoldings[token]
	delete(l.openHoldings, token)
	h.to = min(h.to, now)
	if h.from < h.to {
		l.endedHoldings = append(l.endedHoldings, h)
	}
}

// recordLoss records a lock that was lost within its validity.
func (l *ledger) recordLoss(key, token, cause string) { l.recordViolation(l.losses, key, token, cause) }

// recordRevival records a lock that reappeared.
func (l *ledger) recordRevival(key, token, cause string) {
	l.recordViolation(l.revivals, key, token, cause)
}

// recordViolation records the first violation of a token.
func (l *ledger) recordViolation(violations map[string]violation, key, token, cause string) {
	v := violation{l.now(), fmt.Sprintf("%s of %s: %s", key, token, cause)}
	if l.inspect != nil {
		v.text += "; then the masters hold " + l.inspect(key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, exists := violations[token]; !exists {
		violations[token] = v
	}
}

func (l *ledger) countReply(command, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replyCounts[command] == nil {
		l.replyCounts[command] = map[string]int{}
	}
	l.replyCounts[command][kind]++
}

// recordLatency records the duration of a granted LOCK.
func (l *ledger) recordLatency(duration time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = append(l.latencies, duration)
}

// grantCount returns the number of granted locks.
func (l *ledger) grantCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}

// sharedGrantCount returns the number of grants with SHARED or the number of grants with SLOTS,
// whichever is smaller.
func (l *ledger) sharedGrantCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.slotGrants[unlimited], l.slotGrants[slotCount])
}

// liveHoldings returns the granted locks whose release has not begun, by token.
func (l *ledger) liveHoldings() map[string]holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.openHoldings)
}

// isSettled reports whether a token was refused or released.
func (l *ledger) isSettled(token string) bool {
	client, number := l.parseToken(token)
	l.mu.Lock()
	defer l.mu.Unlock()
	return number > 0 && number <= l.tokenCounts[client] && !l.openTokens[client][number]
}

// isLive reports whether a client may still rely on a lock: its release has not begun, and its
// validity has not expired.
func (l *ledger) isLive(token string) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.openHoldings[token]
	return held && now < h.to
}
