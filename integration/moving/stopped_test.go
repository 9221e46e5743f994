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

// stopsEnv sets how often a proxy is stopped.
const stopsEnv = "REDLOCK_MOVE_STOPS"

// TestStoppedProxyGrantsNothing: a proxy is stopped around a SET NX that it relays, and continues
// when the locks have moved and another client has the lock. The proxy's client is granted nothing.
func TestStoppedProxyGrantsNothing(t *testing.T) {
	redistest.SkipShort(t)
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	random := rand.New(rand.NewPCG(seed, 2))
	upstream := kit.StartRedis(t, redistest.Durable()...)
	link := kit.StartLink(t, upstream)
	r := &rig{t: t, upstream: upstream, masters: kit.StartMasters(t)}
	others := append(kit.PatientMasters(), "--move-from-upstream")
	r.add(append([]string{"--lock-keys", "lock:*", "--upstream", "redis://" + link.Addr()}, others...)...)
	r.add(append(kit.LockKeyArgs(upstream), others...)...)
	r.wantVoting()
	seen := map[string]int{}
	for i := range int(kit.NumberFrom(t, stopsEnv, 5)) {
		how, what := r.stopAround(random, link, i)
		seen[how+": "+what]++
	}
	t.Log(counts(seen))
}

// stopAround stops the first proxy around a command, and then moves the locks to the upstream.
func (r *rig) stopAround(random *rand.Rand, link *faultlink.Link, i int) (how, what string) {
	r.t.Helper()
	key := fmt.Sprint("lock:stopped:", i)
	client, other := kit.Dial(r.t, r.addrs[0]), kit.Dial(r.t, r.addrs[1])
	defer client.Close()
	defer other.Close()
	kit.Do(r.t, client, "GET", key) // opens a connection to the upstream
	send := func() {
		kit.Must(r.t, client.Send(redistest.AppendCommand(nil, "SET", key, "late", "NX", "PX", "60000")))
	}
	upstreamStops := false
	switch i % 5 {
	case 0:
		how = "stopped, then sent"
		kit.Must(r.t, r.proxies[0].Pause())
		send()
	case 1:
		how = "sent, then stopped at once"
		send()
		kit.Must(r.t, r.proxies[0].Pause())
	case 2:
		how = "sent, then stopped soon"
		send()
		time.Sleep(time.Duration(random.Int64N(int64(time.Millisecond)))) // the next step may come after any delay
		kit.Must(r.t, r.proxies[0].Pause())
	case 3: // the forwarded command is in the upstream's socket
		how, upstreamStops = "forwarded to an upstream that stands still, then stopped", true
		kit.Must(r.t, r.upstream.Pause())
		send()
		time.Sleep(20 * time.Millisecond) // the next step may come after any delay
		kit.Must(r.t, r.proxies[0].Pause())
	case 4:
		how = "on its way to the upstream when the proxy is stopped, and there after the move"
		link.Cut()
		send()
		time.Sleep(20 * time.Millisecond) // the next step may come after any delay
		kit.Must(r.t, r.proxies[0].Pause())
	}
	if upstreamStops {
		time.Sleep(20 * time.Millisecond) // the fault lasts
		kit.Must(r.t, r.upstream.Continue())
	}
	r.mustMove(1, "--even-if-others")
	granted := kit.Do(r.t, other, "SET", key, "other", "NX", "PX", "60000")
	holder := kit.Do(r.t, other, "GET", key)
	if i%5 == 4 {
		kit.Must(r.t, link.Heal())
		time.Sleep(50 * time.Millisecond) // the fault lasts
	}
	kit.Must(r.t, r.proxies[0].Continue())
	reply, err := client.Receive()
	what = fmt.Sprintf("the other is granted %v, the late one %v, %v", granted, reply, err != nil)
	switch {
	case granted == "OK" && reply == "OK":
		r.t.Errorf("%s: BOTH were granted %s", how, key)
	case granted == "OK" && holder != "other" || granted == nil && holder != "late":
		r.t.Errorf("%s: the other was granted %v, and %v holds it", how, granted, holder)
	}
	if now := kit.Do(r.t, other, "GET", key); now != holder {
		r.t.Errorf("%s: %v held %s, and now it is %v", how, holder, key, now)
	}
	if left := r.atUpstream(); len(left) > 0 {
		r.t.Errorf("%s: %q is at the upstream", how, left)
	}
	kit.Do(r.t, other, "DEL", key)
	kit.Soon(r.t, func() error {
		_, err := r.move(1, "--back", "--even-if-others") // the first proxy's connections have the link's address
		return err
	})
	return how, what
}
