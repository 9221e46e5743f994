//go:build integration

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// dialect is a way to lock with ordinary commands, as one library does it.
type dialect struct {
	name    string
	variant string // beside the name in its keys, where a dialect is tried in several ways
	taken   string // what the program shows when the lock is granted
	owned   bool   // who does not hold the lock can neither release nor extend it
	extends bool
	endless bool                      // its keys have no time to live: the clients' clocks end it
	fixed   bool                      // an extension lasts as long as the lock was taken for
	coarse  bool                      // times to live are whole seconds
	keys    int                       // how many keys one lock has, if several
	stored  func(key string) []string // the names under which a lock is stored, if not its key
	more    func(s *side, d dialect)  // what else the library does
	only    func(s *side, d dialect)  // all that is tried, where locks are not taken and released one by one
}

// key is a lock key; several, separated by commas, where a lock has several.
func (d dialect) key(name string) string {
	key := d.base(name)
	keys := []string{key}
	for n := 2; n <= d.keys; n++ {
		keys = append(keys, fmt.Sprintf("%s:%d", key, n))
	}
	return strings.Join(keys, ",")
}

// base is one lock key.
func (d dialect) base(name string) string { return "lock:" + d.name + d.variant + ":" + name }

// names are the keys under which a lock is stored.
func (d dialect) names(key string) []string {
	if d.stored == nil {
		return strings.Split(key, ",")
	}
	return d.stored(key)
}

// kind is the dialect and how many keys the lock has.
func (d dialect) kind(key string) string { return fmt.Sprint(d.name, strings.Count(key, ",")) }

// contestLease is how long a lock is taken for in a contest. Where time stamps are exchanged, who
// comes second can overwrite the first one's, and the lock ends with its time only.
func (d dialect) contestLease() time.Duration {
	if d.endless {
		return longLease / 4
	}
	return longLease
}

// short is a time to live that a test can wait for.
func (d dialect) short() time.Duration {
	if d.coarse {
		return coarseLease
	}
	return briefLease
}

// tryLocks runs the same requests on a plain Redis and through the proxy, at the same time, and
// wants the same answers.
func tryLocks(t *testing.T, dialects []dialect, command ...string) {
	t.Helper()
	tryLocksOn(t, startProxied, dialects, command)
}

// tryLocksOn is tryLocks with a proxy that start starts.
func tryLocksOn(t *testing.T, start func(*testing.T, []string) *side, dialects []dialect, command []string) {
	t.Helper()
	var plain, proxied []string
	t.Run("sides", func(t *testing.T) {
		t.Run("one Redis", func(t *testing.T) { trySide(t, startPlain, &plain, dialects, command) })
		t.Run("through the proxy", func(t *testing.T) { trySide(t, start, &proxied, dialects, command) })
	})
	wantSame(t, plain, proxied)
}

func trySide(t *testing.T, start func(*testing.T, []string) *side, transcript *[]string, dialects []dialect, command []string) {
	t.Parallel()
	s := start(t, command)
	defer func() { *transcript = s.transcript }() // also what was said before a failure
	s.all(dialects)
}

// all tries every dialect.
func (s *side) all(dialects []dialect) {
	s.t.Helper()
	for _, d := range dialects {
		if d.only != nil {
			d.only(s, d)
		} else {
			s.whole(d)
		}
	}
	ordinary := slices.DeleteFunc(slices.Clone(dialects), func(d dialect) bool { return d.only != nil })
	s.expiries(ordinary, "expiry", func() error { return nil })
	s.expiries(ordinary, "expiry-killed", s.killMinority)
	kit.Must(s.t, s.restartMinority())
}

// wantSame compares transcripts line by line, up to where one of them ends.
func wantSame(t *testing.T, plain, proxied []string) {
	t.Helper()
	common := min(len(plain), len(proxied))
	for i := range common {
		if plain[i] != proxied[i] {
			t.Errorf("line %d\n  on one Redis:      %s\n  through the proxy: %s", i+1, plain[i], proxied[i])
		}
	}
	if common == 0 || len(plain) != len(proxied) {
		t.Errorf("%d lines on one Redis, %d through the proxy", len(plain), len(proxied))
	}
	t.Logf("%d lines compared", common)
}
