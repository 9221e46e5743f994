//go:build integration

package moving

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestSeveralOverMoves moves locks of MLOCK to the upstream and back. They stay held with their
// token, a client that waits for one of them gets an error, and MEXTEND and MUNLOCK find them
// again. A lock with holders prevents the move to the upstream.
func TestSeveralOverMoves(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	mlock := func(token string) []string { return strings.Fields("MLOCK 2 lock:a lock:b " + token + " PX 600000") }
	const atUpstream = "ERR MLOCK needs the locks on the masters: they are at the upstream; "
	kit.WantPrefix(t, clientA, strings.Join(mlock("me"), " "), atUpstream)
	kit.Want(t, clientA, "OK", "SET", "lock:b", "upstream's", "NX", "PX", "600000")
	r.mustMove(0)
	kit.WantReply(t, clientA, strings.Join(mlock("me"), " "), nil)
	kit.WantReply(t, clientB, "UNLOCK lock:b upstream's", int64(1))
	kit.WantGrant(t, clientA, append(mlock("me"), "BLOCK", "20000")...)
	for _, words := range []string{"SHARED", "SLOTS 2"} {
		kit.WantGrant(t, clientB, append([]string{"LOCK", "lock:c", "reader", "PX", "600000"}, strings.Fields(words)...)...)
		r.wantRefused(1, "it is held with SHARED or SLOTS", backFlag)
		kit.WantReply(t, clientA, "UNLOCK lock:c reader", int64(1))
	}
	waiter := kit.Connect(t, r.proxies[1])
	kit.Must(t, waiter.Send(redistest.AppendCommand(nil, append(mlock("you"), "BLOCK", "60000")...)))
	kit.WantBlocked(t, r.proxies[1], 1)
	r.mustMove(1, backFlag)
	if reply, err := waiter.Receive(); err != nil || !strings.Contains(kit.ReplyText(reply), "upstream") {
		t.Errorf("the client that waited got %v, %v", kit.ReplyText(reply), err)
	}
	for _, key := range []string{"lock:a", "lock:b"} {
		kit.Want(t, clientB, "me", "GET", key)
	}
	kit.WantPrefix(t, clientA, strings.Join(mlock("you"), " "), atUpstream)
	r.mustMove(0)
	kit.WantReply(t, clientB, strings.Join(mlock("you"), " "), nil)
	kit.WantGrant(t, clientB, "MEXTEND", "2", "lock:a", "lock:b", "me", "PX", "900000")
	kit.WantReply(t, clientA, "MUNLOCK 2 lock:a lock:b me", int64(2))
	kit.WantGrant(t, clientB, append(mlock("you"), "BLOCK", "20000")...)
}
