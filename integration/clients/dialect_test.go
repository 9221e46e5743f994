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

// dialect is a way in which a library locks with ordinary commands.
type dialect struct {
	name         string
	variant      string // added to the name in the keys, if a dialect is tested in several ways
	grantOutput  string // the output of the program when the lock is granted
	holderOnly   bool   // only the holder of the lock can release or extend it
	canExtend    bool
	withoutTTL   bool                            // no TTL: locks expire by the clients' clocks
	fixedLease   bool                            // an extension has the lease with which the lock was taken
	wholeSeconds bool                            // TTLs are whole seconds
	keyCount     int                             // number of keys of one lock, if several
	storedKeys   func(key string) []string       // keys of a stored lock, if they are not the lock's key
	extraCheck   func(s *lockService, d dialect) // runs further tests of the library
	soleCheck    func(s *lockService, d dialect) // replaces the dialect's other tests
}

// key returns a lock key, or, if a lock has several keys, all of them, separated by commas.
func (d dialect) key(name string) string {
	key := d.keyName(name)
	keys := []string{key}
	for n := 2; n <= d.keyCount; n++ {
		keys = append(keys, fmt.Sprintf("%s:%d", key, n))
	}
	return strings.Join(keys, ",")
}

// keyName returns one lock key.
func (d dialect) keyName(name string) string { return "lock:" + d.name + d.variant + ":" + name }

// keyNames returns the keys of a lock.
func (d dialect) keyNames(key string) []string {
	if d.storedKeys == nil {
		return strings.Split(key, ",")
	}
	return d.storedKeys(key)
}

// kind returns a text that differs between dialects, and between locks with different numbers of
// keys.
func (d dialect) kind(key string) string { return fmt.Sprint(d.name, strings.Count(key, ",")) }

// contestLease returns the lease of a lock in a contest. If a lock has a time stamp instead of a
// TTL, another client can overwrite the holder's time stamp. Then the lock becomes free only when
// it expires.
func (d dialect) contestLease() time.Duration {
	if d.withoutTTL {
		return longLease / 4
	}
	return longLease
}

// shortLease returns a lease so short that a test can wait for its expiry.
func (d dialect) shortLease() time.Duration {
	if d.wholeSeconds {
		return coarseLease
	}
	return shortestLease
}

// compareLocks sends the same requests to a single Redis and to the proxy, and compares the
// replies.
func compareLocks(t *testing.T, dialects []dialect, command ...string) {
	t.Helper()
	compareLocksOn(t, startLockKeyService, dialects, command)
}

// compareLocksOn does the same as compareLocks, with a proxy that start starts.
func compareLocksOn(t *testing.T, start func(*testing.T, []string) *lockService, dialects []dialect, command []string) {
	t.Helper()
	var redisTranscript, proxyTranscript []string
	t.Run("sides", func(t *testing.T) {
		t.Run("one Redis", func(t *testing.T) { runLockService(t, startRedisService, &redisTranscript, dialects, command) })
		t.Run("through the proxy", func(t *testing.T) { runLockService(t, start, &proxyTranscript, dialects, command) })
	})
	wantSame(t, redisTranscript, proxyTranscript)
}

func runLockService(t *testing.T, start func(*testing.T, []string) *lockService, transcript *[]string, dialects []dialect, command []string) {
	t.Parallel()
	s := start(t, command)
	defer func() { *transcript = s.transcript }() // even after a failure
	s.checkDialects(dialects)
}

// checkDialects tests every dialect, and lets locks of all dialects without a soleCheck expire.
func (s *lockService) checkDialects(dialects []dialect) {
	s.t.Helper()
	for _, d := range dialects {
		if d.soleCheck != nil {
			d.soleCheck(s, d)
		} else {
			s.checkDialect(d)
		}
	}
	ordinary := slices.DeleteFunc(slices.Clone(dialects), func(d dialect) bool { return d.soleCheck != nil })
	s.checkExpiry(ordinary, "expiry", func() error { return nil })
	s.checkExpiry(ordinary, "expiry-killed", s.killMinority)
	kit.Must(s.t, s.restartMinority())
}

// wantSame fails the test unless two transcripts are equal. It prints the lines that differ, up to
// the end of the shorter transcript.
func wantSame(t *testing.T, redisTranscript, proxyTranscript []string) {
	t.Helper()
	common := min(len(redisTranscript), len(proxyTranscript))
	for i := range common {
		if redisTranscript[i] != proxyTranscript[i] {
			t.Errorf("line %d\n  on one Redis:      %s\n  through the proxy: %s", i+1, redisTranscript[i], proxyTranscript[i])
		}
	}
	if common == 0 || len(redisTranscript) != len(proxyTranscript) {
		t.Errorf("%d lines on one Redis, %d through the proxy", len(redisTranscript), len(proxyTranscript))
	}
	t.Logf("%d lines compared", common)
}
