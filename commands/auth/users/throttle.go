package users

import (
	"hash/maphash"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/internal/lru"
)

const (
	// minPause is the pause after a failed login. Each further failure doubles it, up to
	// maxPause.
	minPause, maxPause = 50 * time.Millisecond, time.Second
	// maxWait limits how long a login waits for its turn.
	maxWait = 5 * time.Second
	// failureRetention is the time for which throttle remembers a failed login.
	failureRetention = time.Minute
	// maxBuckets limits the number of buckets with failed logins in memory. Each bucket is an
	// address with one of nameParts parts of the user names.
	maxBuckets, nameParts = 4096, 16
)

// throttle delays logins after failures. Each bucket, an address with a part of the user names, has
// its own delay. throttle delays neither clients at other addresses, nor most other users at the
// same address. Logins with right and wrong passwords wait equally long, because the wait would
// otherwise distinguish them. throttle is safe for concurrent use.
type throttle struct {
	seed maphash.Seed

	mu               sync.Mutex
	failuresByBucket *lru.Cache[*failures] // by bucket
}

// failures counts the failed logins of a bucket.
type failures struct {
	count       int
	lastFailure time.Time
	nextAttempt time.Time // the earliest time of the next attempt
}

func (f *failures) pauseAfterFailure() time.Duration {
	return min(maxPause, minPause<<min(f.count-1, 10))
}

func newThrottle() *throttle {
	return &throttle{seed: maphash.MakeSeed(), failuresByBucket: lru.New[*failures](maxBuckets)}
}

// bucket returns the bucket of a login: its address and a part of the user names. A /64 network of
// IPv6 counts as one address, because a client may use any address in it.
func (t *throttle) bucket(addr net.Addr, name string) string {
	var network netip.Prefix
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ip := tcp.AddrPort().Addr().Unmap().WithZone("")
		bits := ip.BitLen()
		if ip.Is6() {
			bits = 64
		}
		network, _ = ip.Prefix(bits)
	}
	return network.String() + " " + strconv.FormatUint(maphash.String(t.seed, name)%nameParts, 10)
}

// delay returns the time for which a login must wait; ok is false if the login must not be tried.
func (t *throttle) delay(now time.Time, addr net.Addr, name string) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.find(now, t.bucket(addr, name))
	if f == nil {
		return 0, true
	}
	if wait = max(0, f.nextAttempt.Sub(now)); wait > maxWait {
		return 0, false
	}
	f.nextAttempt = now.Add(wait + f.pauseAfterFailure())
	return wait, true
}

// recordFailure records a failed login.
func (t *throttle) recordFailure(now time.Time, addr net.Addr, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	bucket := t.bucket(addr, name)
	f := t.find(now, bucket)
	if f == nil {
		f = &failures{}
		t.failuresByBucket.Set(bucket, f)
	}
	f.count++
	f.lastFailure = now
	if next := now.Add(f.pauseAfterFailure()); next.After(f.nextAttempt) {
		f.nextAttempt = next
	}
}

// find returns the failures of a bucket, or nil if it has none within failureRetention. The caller
// holds mu.
func (t *throttle) find(now time.Time, bucket string) *failures {
	f, known := t.failuresByBucket.Get(bucket)
	if !known || now.Sub(f.lastFailure) > failureRetention {
		return nil
	}
	return f
}
