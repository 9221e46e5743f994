//go:build integration

package moving

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// stopsEnv sets the number of stops of a proxy.
const stopsEnv = "REDLOCK_MOVE_STOPS"

// TestGrantsOfStoppedProxy stops a proxy before or after it relays a SET NX. The locks move,
// and another client requests the lock. Then the stopped proxy continues. Only one of the two
// clients is granted the lock.
func TestGrantsOfStoppedProxy(t *testing.T) {
	redistest.SkipShort(t)
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	random := rand.New(rand.NewPCG(seed, 2))
	upstream := kit.StartRedis(t, redistest.DurableArgs()...)
	link := kit.StartLink(t, upstream)
	r := &rig{t: t, upstream: upstream, masters: kit.StartMasters(t)}
	moreArgs := append(kit.LongMasterTimeoutArgs(), "--move-from-upstream")
	r.addProxy(append([]string{"--lock-keys", "lock:*", "--upstream", "redis://" + link.Addr()}, moreArgs...)...)
	r.addProxy(append(kit.LockKeyArgs(upstream), moreArgs...)...)
	r.wantVoting()
	results := map[string]int{}
	for i := range int(kit.NumberFrom(t, stopsEnv, 5)) {
		situation, result := r.stopAround(random, link, i)
		results[situation+": "+result]++
	}
	t.Log(formatCounts(results))
}

// stopAround stops the first proxy before or after a command, moves the locks to the masters, and
// lets the proxy continue. Finally it moves the locks back to the upstream.
func (r *rig) stopAround(random *rand.Rand, link *faultlink.Link, i int) (situation, result string) {
	r.t.Helper()
	key := fmt.Sprint("lock:stopped:", i)
	client, otherClient := kit.Dial(r.t, r.addrs[0]), kit.Dial(r.t, r.addrs[1])
	defer client.Close()
	defer otherClient.Close()
	kit.Do(r.t, client, "GET", key) // opens a connection to the upstream
	send := func() {
		kit.Must(r.t, client.Send(redistest.AppendCommand(nil, "SET", key, "late", "NX", "PX", "60000")))
	}
	pausedUpstream := false
	switch i % 5 {
	case 0:
		situation = "stopped, then sent"
		kit.Must(r.t, r.proxies[0].Pause())
		send()
	case 1:
		situation = "sent, then stopped at once"
		send()
		kit.Must(r.t, r.proxies[0].Pause())
	case 2:
		situation = "sent, then stopped soon"
		send()
		// The next step may come after any delay.
		time.Sleep(time.Duration(random.Int64N(int64(time.Millisecond))))
		kit.Must(r.t, r.proxies[0].Pause())
	case 3: // the forwarded command is in the upstream's socket
		situation, pausedUpstream = "forwarded to an upstream that stands still, then stopped", true
		kit.Must(r.t, r.upstream.Pause())
		send()
		time.Sleep(20 * time.Millisecond) // the next step may come after any delay
		kit.Must(r.t, r.proxies[0].Pause())
	case 4:
		situation = "on its way to the upstream when the proxy is stopped, and there after the move"
		link.Cut()
		send()
		time.Sleep(20 * time.Millisecond) // the next step may come after any delay
		kit.Must(r.t, r.proxies[0].Pause())
	}
	if pausedUpstream {
		time.Sleep(20 * time.Millisecond) // the fault lasts
		kit.Must(r.t, r.upstream.Continue())
	}
	r.mustMove(1, "--even-if-others")
	otherReply := kit.Do(r.t, otherClient, "SET", key, "other", "NX", "PX", "60000")
	holder := kit.Do(r.t, otherClient, "GET", key)
	if i%5 == 4 {
		kit.Must(r.t, link.Heal())
		time.Sleep(50 * time.Millisecond) // the delayed command arrives
	}
	kit.Must(r.t, r.proxies[0].Continue())
	reply, err := client.Receive()
	result = fmt.Sprintf("the other is granted %v, the late one %v, %v", otherReply, reply, err != nil)
	switch {
	case otherReply == "OK" && reply == "OK":
		r.t.Errorf("%s: BOTH were granted %s", situation, key)
	case otherReply == "OK" && holder != "other" || otherReply == nil && holder != "late":
		r.t.Errorf("%s: the other was granted %v, and %v holds it", situation, otherReply, holder)
	}
	if now := kit.Do(r.t, otherClient, "GET", key); now != holder {
		r.t.Errorf("%s: %v held %s, and now it is %v", situation, holder, key, now)
	}
	if keys := r.keysAtUpstream(); len(keys) > 0 {
		r.t.Errorf("%s: %q is at the upstream", situation, keys)
	}
	kit.Do(r.t, otherClient, "DEL", key)
	kit.Eventually(r.t, func() error {
		// The first proxy's connections have the link's address.
		_, err := r.move(1, "--back", "--even-if-others")
		return err
	})
	return situation, result
}
