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
}

// overlap is a violation: a client was granted a lock while another client could rely on it.
type overlap struct{ first, second holding }

func (o overlap) violation() violation {
	return violation{o.second.from, fmt.Sprintf("%s: %s held it from %v to %v, and %s from %v to %v", o.first.key,
		o.first.token, o.first.from,
		o.first.to, o.second.token, o.second.from, o.second.to)}
}

// overlaps returns every holding that begins within an earlier holding of the same key, with the
// earlier holding that ends last.
func overlaps(all []holding) []overlap {
	ordered := slices.SortedStableFunc(slices.Values(all), func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
	})
	var found []overlap
	var longest holding // the earlier holding of this key that ends last
	for _, h := range ordered {
		if h.key != longest.key {
			longest = h
			continue
		}
		if h.from < longest.to {
			found = append(found, overlap{longest, h})
		}
		if h.to > longest.to {
			longest = h
		}
	}
	return found
}

func TestOverlaps(t *testing.T) {
	for _, test := range []struct {
		name string
		all  []holding
		want []string // tokens of the holdings that began too early
	}{
		{"nobody", nil, nil},
		{"one after the other", []holding{{"k", "a", 0, 5}, {"k", "b", 5, 9}}, nil},
		{"two keys", []holding{{"k", "a", 0, 5}, {"l", "b", 4, 9}}, nil},
		{"b came while a held", []holding{{"k", "b", 4, 9}, {"k", "a", 0, 5}}, []string{"b"}},
		{"c came while a held, but not b", []holding{{"k", "a", 0, 9}, {"k", "b", 1, 2}, {"k", "c", 8, 10}},
			[]string{"b", "c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, o := range overlaps(test.all) {
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
	began time.Time
	// mark is the beginning of every token of this ledger, and of no other token.
	mark string

	// inspect, if set, returns the state of a key on the masters.
	inspect func(key string) string

	mu     sync.Mutex
	live   map[string]holding // by token: granted, and not being released
	over   []holding
	tokens map[int]int // number of tokens that each client has used
	// For each client, the tokens that may be held. All its other tokens were refused or released.
	unknown map[int]map[int]bool
	forces  map[string][]*force       // by key
	lost    map[string]violation      // by token
	revived map[string]violation      // by token
	grants  []time.Duration           // when each was received
	told    map[string]map[string]int // number of each answer, by command
	took    []time.Duration           // duration of each granted LOCK
}

// force is an operator's FORCEUNLOCK of a key. It may remove every lock that was requested before
// the time to.
type force struct {
	from, to time.Duration
	// ends lists the tokens of the locks that were live when the FORCEUNLOCK was sent.
	ends []string
}

// violation is a violated property.
type violation struct {
	at   time.Duration
	text string
}

func (v violation) String() string {
	return fmt.Sprintf("at %v: %s", v.at.Round(time.Millisecond), v.text)
}

func newLedger() *ledger {
	return &ledger{
		began: time.Now(), mark: fmt.Sprintf("chaos-%08x-", rand.Uint32()), live: map[string]holding{},
		tokens:  map[int]int{},
		unknown: map[int]map[int]bool{}, lost: map[string]violation{}, revived: map[string]violation{},
		told: map[string]map[string]int{}, forces: map[string][]*force{},
	}
}

// now returns the time since the ledger began.
func (l *ledger) now() time.Duration { return time.Since(l.began) }

// newToken returns a token that was never used.
func (l *ledger) newToken(client int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens[client]++
	if l.unknown[client] == nil {
		l.unknown[client] = map[int]bool{}
	}
	l.unknown[client][l.tokens[client]] = true
	return fmt.Sprint(l.mark, client, "-", l.tokens[client])
}

// tokenIn returns the token at the end of a master's value, or "" if the value has no token of this
// ledger.
func (l *ledger) tokenIn(value string) string {
	if at := strings.LastIndex(value, l.mark); at >= 0 {
		return value[at:]
	}
	return ""
}

// numbers returns the client and the number in a token.
func (l *ledger) numbers(token string) (client, number int) {
	first, second, _ := strings.Cut(strings.TrimPrefix(token, l.mark), "-")
	client, _ = strconv.Atoi(first)
	number, _ = strconv.Atoi(second)
	return client, number
}

// settled records a token that was refused or released. It must not be held now or later.
func (l *ledger) settled(token string) {
	client, number := l.numbers(token)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unknown[client], number)
}

// granted records a new grant. The lock may have been removed already if it was requested before
// the reply to an operator's FORCEUNLOCK.
func (l *ledger) granted(h holding, asked time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = append(l.grants, h.from)
	if !l.isForced(h.key, asked) {
		l.live[h.token] = h
	}
}

// mayBeForced reports whether an operator may have removed a lock that was requested at this time.
func (l *ledger) mayBeForced(key string, asked time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isForced(key, asked)
}

// isForced does the same as mayBeForced. The caller holds mu.
func (l *ledger) isForced(key string, asked time.Duration) bool {
	return slices.ContainsFunc(l.forces[key], func(f *force) bool { return asked < f.to })
}

// forcing records a FORCEUNLOCK that is about to be sent. From now on, clients that requested the
// key before its reply cannot rely on the lock.
func (l *ledger) forcing(key string) *force {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &force{from: now, to: math.MaxInt64}
	l.forces[key] = append(l.forces[key], f)
	for token, h := range l.live {
		if h.key == key {
			f.ends = append(f.ends, token)
			l.end(token, now)
		}
	}
	return f
}

// overtaken limits the time after an error, or after the end of its proxy, in which a FORCEUNLOCK
// may still take effect: its ballot is refused after 600 ms.
const overtaken = time.Second

// forced records the reply to a FORCEUNLOCK. Locks that it has removed must not reappear. If the
// outcome is unknown, they may.
func (l *ledger) forced(f *force, known bool) {
	now := l.now()
	if known {
		for _, token := range f.ends {
			l.settled(token)
		}
	} else {
		now += overtaken
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.to = now
}

// extended records that a client may rely on a lock for longer.
func (l *ledger) extended(token string, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.live[token]; ok {
		h.to = max(h.to, until)
		l.live[token] = h
	}
}

// ended records that a client begins to release a lock, or no longer relies on it.
func (l *ledger) ended(token string) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(token, now)
}

// end does the same as ended. The caller holds mu.
func (l *ledger) end(token string, now time.Duration) {
	h := l.live[token]
	delete(l.live, token)
	h.to = min(h.to, now)
	if h.from < h.to {
		l.over = append(l.over, h)
	}
}

// lose records a lock that was lost within its validity.
func (l *ledger) lose(key, token, how string) { l.note(l.lost, key, token, how) }

// revive records a lock that reappeared.
func (l *ledger) revive(key, token, how string) { l.note(l.revived, key, token, how) }

// note records the first violation of a token.
func (l *ledger) note(where map[string]violation, key, token, how string) {
	v := violation{l.now(), fmt.Sprintf("%s of %s: %s", key, token, how)}
	if l.inspect != nil {
		v.text += "; then the masters hold " + l.inspect(key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := where[token]; !known {
		where[token] = v
	}
}

func (l *ledger) count(command, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told[command] == nil {
		l.told[command] = map[string]int{}
	}
	l.told[command][answer]++
}

// latency records the duration of a granted LOCK.
func (l *ledger) latency(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
}

// granteds returns the number of granted locks.
func (l *ledger) granteds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}

// held returns the locks that are live now.
func (l *ledger) held() map[string]holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.live)
}

// isSettled reports whether a token was refused or released.
func (l *ledger) isSettled(token string) bool {
	client, number := l.numbers(token)
	l.mu.Lock()
	defer l.mu.Unlock()
	return number > 0 && number <= l.tokens[client] && !l.unknown[client][number]
}

// isLive reports whether a lock is still held and within its validity.
func (l *ledger) isLive(token string) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.live[token]
	return held && now < h.to
}
