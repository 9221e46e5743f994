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
	// firstPause is the pause after a failed login; after each further one it is twice as long, up
	// to longestPause.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
	// maxWait bounds how long a login waits for its turn.
	maxWait = 5 * time.Second
	// remembered is how long a failed login is.
	remembered = time.Minute
	// maxFailing is how many addresses, and parts of the names of users, are remembered; nameParts
	// is how many parts these have.
	maxFailing, nameParts = 4096, 16
)

// throttle has those wait who fail to log in: each address for a part of the users' names by
// itself, so that others, also other users from the same address, mostly go on as ever. Right and
// wrong passwords wait alike, or the wait would tell them apart. It is safe for concurrent use.
type throttle struct {
	seed maphash.Seed

	mu      sync.Mutex
	failing *lru.Cache[*failures] // by place
}

// failures are those of a place.
type failures struct {
	count int
	last  time.Time
	next  time.Time // when the next login is tried
}

func (f *failures) pause() time.Duration {
	return min(longestPause, firstPause<<min(f.count-1, 10))
}

func newThrottle() *throttle {
	return &throttle{seed: maphash.MakeSeed(), failing: lru.New[*failures](maxFailing)}
}

// place is where logins fail: an address, and a part of the names. A network of IPv6 counts as one
// address, for a client has as many of them as it likes.
func (t *throttle) place(addr net.Addr, name string) string {
	var from netip.Prefix
	if tcp, ok := addr.(*net.TCPAddr); ok {
		ip := tcp.AddrPort().Addr().Unmap().WithZone("")
		bits := ip.BitLen()
		if ip.Is6() {
			bits = 64
		}
		from, _ = ip.Prefix(bits)
	}
	return from.String() + " " + strconv.FormatUint(maphash.String(t.seed, name)%nameParts, 10)
}

// turn is how long a login must wait; ok is false where it is not to be tried.
func (t *throttle) turn(now time.Time, addr net.Addr, name string) (wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.find(now, t.place(addr, name))
	if f == nil {
		return 0, true
	}
	if wait = max(0, f.next.Sub(now)); wait > maxWait {
		return 0, false
	}
	f.next = now.Add(wait + f.pause())
	return wait, true
}

// failed notes a failed login.
func (t *throttle) failed(now time.Time, addr net.Addr, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.place(addr, name)
	f := t.find(now, at)
	if f == nil {
		f = &failures{}
		t.failing.Set(at, f)
	}
	f.count++
	f.last = now
	if next := now.Add(f.pause()); next.After(f.next) {
		f.next = next
	}
}

// find is called with mu held.
func (t *throttle) find(now time.Time, at string) *failures {
	f, known := t.failing.Get(at)
	if !known || now.Sub(f.last) > remembered {
		return nil
	}
	return f
}
