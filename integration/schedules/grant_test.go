//go:build integration

package schedules

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
	"redlock-proxy/quorum/vote"
)

// tooShortError matches the error for a TTL that is too short to be granted.
var tooShortError = regexp.MustCompile(`(?i)too short|invalid expire time`)

// TestTooShortTTL checks that a LOCK whose TTL is too short for any validity gets an error that
// says so. Nil would mean that another client holds the lock. A granted lock is valid for at least
// a millisecond.
func TestTooShortTTL(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	client := connect(t, f.startProxy(t))
	for ms := 1; ms <= 8; ms++ {
		for try := range 5 {
			key := fmt.Sprintf("lock:%d:%d", ms, try)
			reply := kit.Do(t, client, "LOCK", key, "t", "PX", fmt.Sprint(ms))
			failure, failed := reply.(redistest.RespError)
			switch validity, ok := reply.(int64); {
			case ms <= 3 && !(failed && tooShortError.MatchString(string(failure))):
				t.Errorf("LOCK %s PX %d: %#v, want an error like %q", key, ms, reply, tooShortError)
			case ok && validity < 1, reply == nil:
				t.Errorf("LOCK %s PX %d: %#v", key, ms, reply)
			}
			if failed { // a LOCK that fails must leave the lock free
				wantGrant(t, client, "LOCK", key, "u", "PX", "10000", "BLOCK", "10000")
			}
		}
	}
}

// TestSplitVote lets three clients of three proxies take a free lock at the same time, and each
// gets one master. A client gets the reply that another client holds the lock only if one of the
// clients holds it.
func TestSplitVote(t *testing.T) {
	t.Parallel()
	for _, take := range [][]string{{"LOCK", "lock:k", "", "PX", "10000"}, {"SET", "lock:k", "", "NX", "PX", "10000"},
		{"SETNX", "lock:k", ""}} {
		t.Run(take[0], func(t *testing.T) {
			f := startFleet(t, 3)
			var clients []*redistest.Client
			var lateTakes holds
			for i := range f.masters {
				p := f.startProxy(t, kit.LongMasterTimeoutArgs()...)
				for _, master := range f.allMasters() {
					if master != i {
						lateTakes = append(lateTakes, p.hold("lock:k", 0, master)...)
					}
				}
				clients = append(clients, connect(t, p))
			}
			var replies []<-chan any
			for i, client := range clients {
				command := append([]string(nil), take...)
				command[2] = letters([]int{i})
				replies = append(replies, sendAsync(client, command...))
			}
			lateTakes.wait(t)
			for i := range f.masters {
				f.wantHolders(t, "lock:k", letters([]int{i}), i)
			}
			lateTakes.release()
			grants, refusals := 0, 0
			for i, reply := range replies {
				switch got := <-reply; {
				case isGrant(got):
					grants++
				case got == nil, got == any(int64(0)):
					refusals++
				default:
					t.Logf("%s: %v", letters([]int{i}), got)
				}
			}
			t.Logf("%d granted, %d refused", grants, refusals)
			if grants > 1 || grants == 0 && refusals > 0 {
				t.Errorf("%d clients were granted the lock, and %d were refused", grants, refusals)
			}
		})
	}
}

// TestLateBlock delays the reply to LOCK … BLOCK by two seconds. With AT the reply contains the time
// that the command waited. The client may rely on the lock for the sum of the waiting time and the
// validity, counted from its request. A client that counts from the arrival of the reply would rely
// on the lock when another client holds it.
func TestLateBlock(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	nearProxy, farProxy := f.startProxy(t), f.startProxy(t)
	link := startLink(t, farProxy.Addr())
	wantGrant(t, connect(t, nearProxy), "LOCK", "lock:k", "holder", "PX", "3000")
	client := kit.Dial(t, link.Addr())
	delayed := link.HoldReplies(faultlink.Containing("lock:k"))
	sentAt := time.Now()
	reply := sendAsync(client, "LOCK", "lock:k", "t", "PX", "3000", "BLOCK", "20000", "AT")
	f.wantHolders(t, "lock:k", "t", f.allMasters()...)
	grantedBy := time.Since(sentAt)
	rival := connect(t, nearProxy)
	rivalGrant := make(chan time.Time, 1)
	go func() {
		rivalGrant <- awaitGrant(t, rival, time.Now().Add(kit.WaitLimit), "LOCK", "lock:k", "rival", "PX", "10000")
	}()
	time.Sleep(2 * time.Second) // a wrong result would appear by then
	delayed.Release()
	lease := leaseOf(t, <-reply)
	arrived := time.Now()
	validUntil, validFromArrival := sentAt.Add(lease.waitTime+lease.validity), arrived.Add(lease.validity)
	rivalAt := <-rivalGrant
	t.Logf("waited %v, valid for %v: until %v before the rival had it; counted from the arrival until %v after that",
		lease.waitTime, lease.validity, rivalAt.Sub(validUntil), validFromArrival.Sub(rivalAt))
	if lease.waitTime < 500*time.Millisecond || lease.waitTime > grantedBy {
		t.Errorf("it waited for %v, but it was granted after three seconds, and before %v", lease.waitTime, grantedBy)
	}
	if lease.validity < 3*time.Second-vote.RoundLimit-vote.DriftMargin(3*time.Second) || lease.validity >= 3*time.Second {
		t.Errorf("it is valid for %v of 3 s", lease.validity)
	}
	if rivalAt.IsZero() || rivalAt.Before(validUntil) {
		t.Errorf("the rival was granted the lock %v before its client stopped relying on it", validUntil.Sub(rivalAt))
	}
	if validFromArrival.Before(rivalAt) {
		t.Error("the validity counted from the arrival of the reply is also correct: the test shows nothing")
	}
}

// TestAt checks the reply to LOCK, with and without BLOCK, and to EXTEND, with AT, in RESP2 and
// RESP3. Without AT, the reply is an integer.
func TestAt(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	two, three := connect(t, f.startProxy(t)), connect(t, f.proxies[0])
	kit.Do(t, three, "HELLO", "3")
	for i, client := range []*redistest.Client{two, three} {
		key := fmt.Sprint("lock:k", i)
		for _, command := range [][]string{
			{"LOCK", key, "t", "PX", "10000", "AT"},
			{"EXTEND", key, "t", "PX", "10000", "AT"},
			{"LOCK", key + "b", "t", "EX", "10", "BLOCK", "1000", "AT"},
		} {
			reply := kit.Do(t, client, command...)
			if _, isMap := reply.(map[string]any); isMap != (client == three) {
				t.Errorf("%v: %#v", command, reply)
			}
			if got := leaseOf(t, reply); got.waitTime > time.Second || got.validity < 9*time.Second ||
				got.validity >= 10*time.Second {
				t.Errorf("%v: %#v", command, reply)
			}
		}
		wantGrant(t, client, "LOCK", key+"c", "t", "PX", "10000", "BLOCK", "1000")
		kit.Want(t, client, nil, "LOCK", key, "u", "PX", "10000", "AT")
		kit.Want(t, client, nil, "EXTEND", key, "u", "PX", "10000", "AT")
	}
}

// timedLease is the reply to a command with AT.
type timedLease struct{ validity, waitTime time.Duration }

// leaseOf reads a reply with AT, a map or a flat array.
func leaseOf(t *testing.T, reply any) timedLease {
	t.Helper()
	fields, ok := reply.(map[string]any)
	if flat, isFlat := reply.([]any); isFlat && len(flat) == 4 {
		fields, ok = map[string]any{fmt.Sprint(flat[0]): flat[1], fmt.Sprint(flat[2]): flat[3]}, true
	}
	validity, hasValidity := fields["validity"].(int64)
	waited, hasWaited := fields["waited"].(int64)
	if !ok || len(fields) != 2 || !hasValidity || !hasWaited {
		t.Fatalf("got %#v, want validity and waited", reply)
	}
	return timedLease{time.Duration(validity) * time.Millisecond, time.Duration(waited) * time.Millisecond}
}
