//go:build integration

package schedules

import (
	"os"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestUnlockRetryDuringMasterChange lets one proxy change the masters. The configuration file
// of a second proxy keeps the old masters for longer than a command waits. Meanwhile an UNLOCK of a
// lock that the second proxy granted gets NOQUORUM. Soon after the second proxy follows the change,
// the key is free.
func TestUnlockRetryDuringMasterChange(t *testing.T) {
	t.Parallel()
	f, p, otherProxy := startChangingFleet(t, 4, 2, 3)
	client := connect(t, p)
	wantGrant(t, client, "LOCK", "lock:k", "t", "PX", "600000")
	f.wantHolders(t, "lock:k", "t", A, B, C)
	file := f.files[0]
	f.files[0] += ".later" // so that no proxy reads it yet
	f.changeMasters(t, otherProxy, A, B, C, D)
	time.Sleep(time.Second) // by now the proxy knows that the masters are being changed
	if got := kit.Do(t, client, "UNLOCK", "lock:k", "t"); !kit.IsNoQuorum(got) {
		t.Fatalf("UNLOCK: %v, want NOQUORUM", got)
	}
	kit.Must(t, os.Rename(f.files[0], file))
	f.wantMasters(t, p, A, B, C, D)
	wantNotHeld(t, connect(t, otherProxy), "lock:k")
}

// TestUnlockRetryAfterMasterChange takes a lock before a change of the masters. After the
// change, the proxy that granted the lock reaches no master for a while, and an UNLOCK gets
// NOQUORUM. Soon after the proxy reaches the masters again, the key is free.
func TestUnlockRetryAfterMasterChange(t *testing.T) {
	t.Parallel()
	f, p, otherProxy := startChangingFleet(t, 4, 2, 3)
	client := connect(t, p)
	wantGrant(t, client, "LOCK", "lock:k", "t", "PX", "600000")
	f.wantHolders(t, "lock:k", "t", A, B, C)
	f.changeMasters(t, otherProxy, A, B, C, D)
	f.wantMasters(t, p, A, B, C, D)
	delayed := p.hold("lock:k", 0, f.allMasters()...)
	if got := kit.Do(t, client, "UNLOCK", "lock:k", "t"); !kit.IsNoQuorum(got) {
		t.Fatalf("UNLOCK: %v, want NOQUORUM", got)
	}
	time.Sleep(time.Second) // the fault lasts
	delayed.discard()
	f.wantMasters(t, p, A, B, C, D)
	wantNotHeld(t, connect(t, otherProxy), "lock:k")
}
