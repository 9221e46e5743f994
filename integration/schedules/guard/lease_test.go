//go:build integration

package guardschedules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// lease is a lock that a client holds. The client counts the validity by its own clock, from the
// time before its request.
type lease struct {
	key, token string
	ttl        time.Duration
	holder     *redistest.Client
	validUntil time.Time
}

// lock takes a lock with the given TTL through the first proxy.
func (f *fleet) lock(t *testing.T, key string, ttl time.Duration) *lease {
	t.Helper()
	l := &lease{key: key, token: "holder-of-" + key, ttl: ttl, holder: kit.Connect(t, f.proxies[0])}
	sentAt := time.Now()
	reply := kit.Do(t, l.holder, "LOCK", key, l.token, "PX", millis(ttl))
	validity, granted := reply.(int64)
	if !granted {
		t.Fatalf("LOCK %s: got %#v, want a validity", key, reply)
	}
	l.validUntil = sentAt.Add(time.Duration(validity) * time.Millisecond)
	return l
}

// lockOnAll takes a lock that is on all masters.
func (f *fleet) lockOnAll(t *testing.T, key string, ttl time.Duration) *lease {
	t.Helper()
	l := f.lock(t, key, ttl)
	// The lock is granted as soon as three masters have it.
	f.awaitHolders(t, l, masterA, masterB, masterC, masterD, masterE)
	return l
}

// lockOnThree takes a lock while D and E are unreachable, so that only A, B and C have it. Then all
// masters vote.
func (f *fleet) lockOnThree(t *testing.T, key string, ttl time.Duration) *lease {
	t.Helper()
	f.cutOff(t, masterD, masterE)
	f.wantVoting(t, 3)
	l := f.lock(t, key, ttl)
	f.reconnect(t, masterD, masterE)
	f.wantVoting(t, masterCount)
	f.awaitHolders(t, l, masterA, masterB, masterC)
	return l
}

// awaitHolders waits until exactly the given masters have the lock.
func (f *fleet) awaitHolders(t *testing.T, l *lease, masters ...int) {
	t.Helper()
	kit.Eventually(t, func() error {
		if holders := f.holdersOf(t, l); !slices.Equal(holders, masters) {
			return fmt.Errorf("%s is on the masters %v, want %v", l.key, holders, masters)
		}
		return nil
	})
}

// holdersOf returns the masters that have the lock, by its token.
func (f *fleet) holdersOf(t *testing.T, l *lease) (holders []int) {
	t.Helper()
	for i, master := range f.masters {
		if value, _ := mustSend(t, master, "GET", l.key).(string); strings.HasSuffix(value, l.token) {
			holders = append(holders, i)
		}
	}
	return holders
}

// wantLostOn fails the test unless masters have lost the lock. Otherwise the schedule would show
// nothing.
func (f *fleet) wantLostOn(t *testing.T, l *lease, masters ...int) {
	t.Helper()
	for _, i := range masters {
		if value := mustSend(t, f.masters[i], "GET", l.key); value != nil {
			t.Fatalf("master %d still has %s: %v; the test shows nothing", i, l.key, value)
		}
	}
}

// wantRefused lets a rival request the lock repeatedly, for the given time or until the lease
// expires. It fails the test if the lock is granted.
func (l *lease) wantRefused(t *testing.T, rival *redistest.Client, length time.Duration) {
	t.Helper()
	start, replies := time.Now(), map[string]int{}
	deadline := start.Add(length)
	if l.validUntil.Before(deadline) {
		deadline = l.validUntil
	}
	for tries := 1; time.Now().Before(deadline); tries++ {
		reply := l.requestAsRival(t, rival)
		if _, granted := reply.(int64); granted && time.Now().Before(l.validUntil) {
			t.Fatalf("GRANTED TWICE: %s is granted to a rival after %d tries in %v; its holder has it for another %v",
				l.key, tries, time.Since(start).Round(time.Millisecond), time.Until(l.validUntil).Round(time.Millisecond))
		}
		replies[replyKind(reply)]++
		time.Sleep(5 * time.Millisecond) // sets the pace of a client
	}
	t.Logf("%s, held for another %v: replies to a rival: %v", l.key, time.Until(l.validUntil).Round(time.Millisecond), replies)
}

// requestAsRival lets a rival request the lock.
func (l *lease) requestAsRival(t *testing.T, rival *redistest.Client) any {
	t.Helper()
	return kit.Do(t, rival, "LOCK", l.key, "rival", "PX", millis(l.ttl))
}

// replyKind returns a reply without its details.
func replyKind(reply any) string {
	if failure, bad := reply.(redistest.RespError); bad {
		word, _, _ := strings.Cut(string(failure), " ")
		return word
	}
	return fmt.Sprint(reply)
}

// wantReleased releases the lock, and waits until it is free. The UNLOCK may get NOQUORUM, but not
// the reply that the holder held nothing, unless the lease has expired.
func (l *lease) wantReleased(t *testing.T, rival *redistest.Client) {
	t.Helper()
	reply := kit.Do(t, l.holder, "UNLOCK", l.key, l.token)
	isExpired := reply == any(int64(0)) && time.Now().After(l.validUntil)
	if reply != any(int64(1)) && replyKind(reply) != "NOQUORUM" && !isExpired {
		t.Errorf("UNLOCK %s: got %v, want 1", l.key, reply)
	}
	l.wantFree(t, rival)
}

// wantFree waits until a released or expired lock is granted to a rival.
func (l *lease) wantFree(t *testing.T, rival *redistest.Client) {
	t.Helper()
	kit.Eventually(t, func() error {
		reply := l.requestAsRival(t, rival)
		if _, granted := reply.(int64); !granted {
			return fmt.Errorf("LOCK %s, whose lease has ended: got %v", l.key, reply)
		}
		return nil
	})
}

// wantKept checks, at the end of a schedule, that the client still holds the lock. A rival must not
// be granted the lock, neither now nor after all masters vote again.
func (f *fleet) wantKept(t *testing.T, l *lease, rival *redistest.Client) {
	t.Helper()
	l.wantRefused(t, rival, 2*time.Second)
	f.wantVoting(t, masterCount)
	l.wantRefused(t, rival, time.Second/2)
	l.wantReleased(t, rival)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
