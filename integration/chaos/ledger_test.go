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

// holding is the time in which a client may take a lock for its own, by the test process' monotonic
// clock: from the receipt of the grant, to the end of its validity, counted from before it was
// asked for, or to the sending of its release if that comes first.
type holding struct {
	key, token string
	from, to   time.Duration
}

// overlap is a client that was granted a lock while another could rely on it.
type overlap struct{ first, second holding }

func (o overlap) violation() violation {
	return violation{o.second.from, fmt.Sprintf("%s: %s held it from %v to %v, and %s from %v to %v", o.first.key, o.first.token, o.first.from,
		o.first.to, o.second.token, o.second.from, o.second.to)}
}

// overlaps finds every holding that begins within an earlier one of the same key; of several
// earlier ones it names the longest.
func overlaps(all []holding) []overlap {
	ordered := slices.SortedStableFunc(slices.Values(all), func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
	})
	var found []overlap
	var longest holding // of those before, of this key
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
		want []string // the tokens of those that came too early
	}{
		{"nobody", nil, nil},
		{"one after the other", []holding{{"k", "a", 0, 5}, {"k", "b", 5, 9}}, nil},
		{"two keys", []holding{{"k", "a", 0, 5}, {"l", "b", 4, 9}}, nil},
		{"b came while a held", []holding{{"k", "b", 4, 9}, {"k", "a", 0, 5}}, []string{"b"}},
		{"c came while a held, but not b", []holding{{"k", "a", 0, 9}, {"k", "b", 1, 2}, {"k", "c", 8, 10}}, []string{"b", "c"}},
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

// ledger is what the clients know of their locks.
type ledger struct {
	began time.Time
	// mark is what every token of this ledger begins with, and no other.
	mark string

	// inspect, if set, tells of a key what the masters hold at the moment.
	inspect func(key string) string

	mu      sync.Mutex
	live    map[string]holding // by token: granted, and not being released
	over    []holding
	tokens  map[int]int               // how many each client has asked with
	unknown map[int]map[int]bool      // of each client, the tokens that may stand: all others of them were refused or released
	forces  map[string][]*force       // by key
	lost    map[string]violation      // by token
	revived map[string]violation      // by token
	grants  []time.Duration           // when each was received
	told    map[string]map[string]int // by command, how often each answer came
	took    []time.Duration           // of each LOCK that was granted
}

// force is an operator's FORCEUNLOCK of a key. It may end whatever was asked for before to.
type force struct {
	from, to time.Duration
	// ends are the tokens of locks that were live when it was sent.
	ends []string
}

// violation is something that must not be.
type violation struct {
	at   time.Duration
	text string
}

func (v violation) String() string {
	return fmt.Sprintf("at %v: %s", v.at.Round(time.Millisecond), v.text)
}

func newLedger() *ledger {
	return &ledger{
		began: time.Now(), mark: fmt.Sprintf("chaos-%08x-", rand.Uint32()), live: map[string]holding{}, tokens: map[int]int{},
		unknown: map[int]map[int]bool{}, lost: map[string]violation{}, revived: map[string]violation{}, told: map[string]map[string]int{}, forces: map[string][]*force{},
	}
}

// now is the time since the ledger began.
func (l *ledger) now() time.Duration { return time.Since(l.began) }

// newToken is a token that was never used before, and of which nothing is known yet.
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

// tokenIn is the token at the end of what a master holds, which may keep other things before it;
// empty: none of ours.
func (l *ledger) tokenIn(value string) string {
	if at := strings.LastIndex(value, l.mark); at >= 0 {
		return value[at:]
	}
	return ""
}

// numbers are the client and the number of one of our tokens.
func (l *ledger) numbers(token string) (client, number int) {
	first, second, _ := strings.Cut(strings.TrimPrefix(token, l.mark), "-")
	client, _ = strconv.Atoi(first)
	number, _ = strconv.Atoi(second)
	return client, number
}

// settled is for a token that was refused or released: it stands nowhere, and never will.
func (l *ledger) settled(token string) {
	client, number := l.numbers(token)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unknown[client], number)
}

// granted is for a lock that was just received. One that was asked for before an operator's
// FORCEUNLOCK was answered may be over already.
func (l *ledger) granted(h holding, asked time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = append(l.grants, h.from)
	if !l.isForced(h.key, asked) {
		l.live[h.token] = h
	}
}

// mayBeForced reports whether an operator may have ended a lock that was asked for at this time.
func (l *ledger) mayBeForced(key string, asked time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isForced(key, asked)
}

// isForced is mayBeForced, called with mu held.
func (l *ledger) isForced(key string, asked time.Duration) bool {
	return slices.ContainsFunc(l.forces[key], func(f *force) bool { return asked < f.to })
}

// forcing is for a FORCEUNLOCK that is about to be sent: nobody holds the key for sure from now on
// who asked for it before it is answered.
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

// overtaken bounds how long after an error, or the end of its proxy, a FORCEUNLOCK may still be
// carried out: a ballot of it is refused after 600 ms.
const overtaken = time.Second

// forced is for the answer of a FORCEUNLOCK. What it has ended for sure must not come back; where
// that is unknown it may still come to be.
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

// extended is for a lock that may be relied on for longer.
func (l *ledger) extended(token string, until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.live[token]; ok {
		h.to = max(h.to, until)
		l.live[token] = h
	}
}

// ended is for a lock that its client begins to release, or does not count on any more.
func (l *ledger) ended(token string) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(token, now)
}

// end is ended, called with mu held.
func (l *ledger) end(token string, now time.Duration) {
	h := l.live[token]
	delete(l.live, token)
	h.to = min(h.to, now)
	if h.from < h.to {
		l.over = append(l.over, h)
	}
}

// lose notes a lock that was denied within its validity.
func (l *ledger) lose(key, token, how string) { l.note(l.lost, key, token, how) }

// revive notes a lock that stands again.
func (l *ledger) revive(key, token, how string) { l.note(l.revived, key, token, how) }

// note keeps the first that is seen of a token.
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

// count counts an answer.
func (l *ledger) count(command, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told[command] == nil {
		l.told[command] = map[string]int{}
	}
	l.told[command][answer]++
}

// latency keeps how long a granted LOCK took.
func (l *ledger) latency(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
}

// granteds is how many locks were granted.
func (l *ledger) granteds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}

// held are the locks that are live at the moment.
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

// isLive reports whether the lock is still held, and its validity is not over.
func (l *ledger) isLive(token string) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.live[token]
	return held && now < h.to
}
