//go:build integration

package locks

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

const (
	// keptEnv sets the number of killed holders, of locks whose proxy is killed, and of locks with
	// MAXHOLD. cutsEnv sets the number of connections that are cut, keptTimeEnv the time for which
	// a lock is kept while masters fail. make kept uses more than the defaults.
	keptEnv, cutsEnv, keptTimeEnv = "REDLOCK_KEPT", "REDLOCK_CUTS", "REDLOCK_KEPT_TIME"

	defaultKept, defaultCuts = 20, 100

	// holderEnv makes this test program a client that keeps a lock until it is killed. The value is
	// the address of the proxy and the key.
	holderEnv = "REDLOCK_TEST_HOLDER"

	// maxWait limits the wait for a lock in these tests, in milliseconds.
	maxWait = "50000"
)

// holdUntilKilled keeps a lock of keptTTL, and waits. target is a value of holderEnv.
func holdUntilKilled(target string) error {
	addr, key, _ := strings.Cut(target, " ")
	client, err := redistest.Dial(addr, 0)
	if err != nil {
		return err
	}
	if err := expectReply(client, wantValidity, "LOCK", key, "t", "PX", kit.Millis(keptTTL), "KEEPALIVE"); err != nil {
		return err
	}
	fmt.Println("granted")
	_, err = client.ReceiveAll()
	return err
}

// parallel runs work for 0 to n-1, at most width at a time, and returns all errors.
func parallel(n, width int, work func(i int) error) error {
	var tasks sync.WaitGroup
	slots, errs := make(chan struct{}, width), make([]error, n)
	for i := range n {
		slots <- struct{}{}
		tasks.Go(func() {
			defer func() { <-slots }()
			if err := work(i); err != nil {
				errs[i] = fmt.Errorf("number %d: %w", i, err)
			}
		})
	}
	tasks.Wait()
	return errors.Join(errs...)
}

// randomUpTo returns a function for concurrent use that returns random durations of up to a limit.
func randomUpTo(seed uint64) func(limit time.Duration) time.Duration {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	return func(limit time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(limit)))
	}
}

// expectReply sends a command and returns an error unless the reply is want. wantValidity stands
// for a grant. expectReply repeats a command whose reply is late. Then an UNLOCK may find no lock.
func expectReply(client *redistest.Client, want any, command ...string) error {
	startedAt, wasLate := time.Now(), false
	reply, err := client.Do(command...)
	for ; kit.IsLate(reply) && time.Since(startedAt) < kit.WaitLimit; wasLate = true {
		reply, err = client.Do(command...)
	}
	if _, granted := reply.(int64); err == nil && (reply == want || want == wantValidity && granted ||
		wasLate && want == int64(1) && reply == int64(0)) {
		return nil
	}
	return fmt.Errorf("%v: got %v, want %v: %w", command, reply, want, orWrongReply(err))
}

const wantValidity = "a validity"

var errWrongReply = errors.New("a wrong reply")

// orWrongReply returns err, or errWrongReply if err is nil.
func orWrongReply(err error) error {
	if err == nil {
		return errWrongReply
	}
	return err
}

// TestKeptLocksOfKilledHolders checks that the lock of a process that is killed (SIGKILL) is free
// within its TTL and 100 ms.
func TestKeptLocksOfKilledHolders(t *testing.T) {
	kills, seed := int(kit.SizeFrom(t, keptEnv, defaultKept/2)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	proxies, random := startProxyPair(t), randomUpTo(seed)
	delays := make([]time.Duration, kills)
	kit.Must(t, parallel(kills, 10, func(i int) (err error) {
		delays[i], err = killHolder(proxies, fmt.Sprint("killed:", i), random(2*keptTTL))
		return err
	}))
	slices.Sort(delays)
	inTime, _ := slices.BinarySearch(delays, keptTTL+100*time.Millisecond)
	t.Logf("%d of %d locks were free within the TTL of %v and 100 ms; the first after %v, the last after %v", inTime, kills,
		keptTTL, delays[0], delays[kills-1])
	if delays[0] < keptTTL/3 || delays[kills-1] > keptTTL+100*time.Millisecond+busySlack {
		t.Error("a lock was free too early or too late")
	}
}

// killHolder kills a process that keeps a lock, after a while, and returns the time until another
// client has the lock.
func killHolder(proxies [2]*harness.Proxy, key string, after time.Duration) (time.Duration, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	holder, err := process.Start(program, nil, append(os.Environ(), holderEnv+"="+proxies[0].Addr()+" "+key))
	if err != nil {
		return 0, err
	}
	defer holder.Kill()
	if _, err := holder.WaitLine(func(line string) bool { return line == "granted" }, kit.WaitLimit); err != nil {
		return 0, err
	}
	rival, err := redistest.Dial(proxies[1].Addr(), kit.WaitLimit)
	if err != nil {
		return 0, err
	}
	defer rival.Close()
	time.Sleep(after) // the proxy renews the lock
	if err := expectReply(rival, nil, "LOCK", key, "rival", "PX", "10000"); err != nil {
		return 0, err
	}
	err = holder.Kill()
	killedAt := time.Now()
	err = errors.Join(err, expectReply(rival, wantValidity, "LOCK", key, "rival", "PX", "10000", "BLOCK", maxWait))
	return time.Since(killedAt), err
}

// TestKeptLocksOfKilledProxies checks that clients keep their locks when their proxy is killed and
// they take the locks over through another proxy.
func TestKeptLocksOfKilledProxies(t *testing.T) {
	locks, seed := int(kit.SizeFrom(t, keptEnv, defaultKept)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	const perProxy, ttl = 10, 5 * time.Second
	masters, random := kit.StartMasters(t)[:3], randomUpTo(seed)
	start := func() *harness.Proxy { return kit.StartProxy(t, redistest.URLs(masters)) }
	failing, other := start(), start()
	for from := 0; from < locks; from += perProxy {
		(&kit.Fleet{Proxies: []*harness.Proxy{failing, other}}).WantVoting(t, len(masters))
		var clients []*redistest.Client
		for range perProxy {
			clients = append(clients, kit.Connect(t, failing))
		}
		extend := func(i int, command string) error {
			return expectReply(clients[i], wantValidity, command, fmt.Sprint("orphan:", from+i), "t", "PX", kit.Millis(ttl), "KEEPALIVE")
		}
		kit.Must(t, parallel(perProxy, perProxy, func(i int) error { return extend(i, "LOCK") }))
		time.Sleep(random(ttl * 2 / 3)) // the proxy renews the lock
		kit.Must(t, failing.Signal(syscall.SIGKILL))
		kit.Must(t, parallel(perProxy, perProxy, func(i int) (err error) {
			if clients[i], err = redistest.Dial(other.Addr(), kit.WaitLimit); err != nil {
				return err
			}
			return extend(i, "EXTEND")
		}))
		rival := kit.Connect(t, other)
		for until := time.Now().Add(ttl + ttl/5); time.Now().Before(until); {
			for i := range perProxy {
				wantNotGranted(t, rival, fmt.Sprint("orphan:", from+i))
			}
			time.Sleep(20 * time.Millisecond) // polls
		}
		for i, client := range clients {
			kit.WantReleased(t, client, fmt.Sprint("orphan:", from+i), "t")
			kit.Must(t, client.Close())
		}
		failing, other = other, start()
	}
}

// TestKeptLocksToMaxHold checks that locks are free after MAXHOLD, within 1 %. On a busy machine
// they may be free later, but not earlier.
func TestKeptLocksToMaxHold(t *testing.T) {
	redistest.SkipShort(t)
	locks := int(kit.SizeFrom(t, keptEnv, defaultKept))
	const busyPercent = 10 // of MAXHOLD; a lock that is renewed past MAXHOLD is later than that
	proxies := startProxyPair(t)
	deviations := make([]float64, locks)
	kit.Must(t, parallel(locks, locks, func(i int) (err error) {
		maxHold := 20*time.Second + time.Duration(i%100)*101*time.Millisecond
		deviations[i], err = holdToMaxHold(proxies, fmt.Sprint("limited:", i), maxHold)
		return err
	}))
	least, most := slices.Min(deviations), slices.Max(deviations)
	t.Logf("%d locks were free %.2f %% to %.2f %% after MAXHOLD", locks, least, most)
	if least < -1 || most > 1+busyPercent {
		t.Errorf("want at least -1 %%, and at most %d %%", 1+busyPercent)
	}
}

// holdToMaxHold keeps a lock to its end, and returns how much later than MAXHOLD another client got
// it, in percent of MAXHOLD.
func holdToMaxHold(proxies [2]*harness.Proxy, key string, maxHold time.Duration) (deviation float64, err error) {
	holder, holderErr := redistest.Dial(proxies[0].Addr(), kit.WaitLimit)
	rival, rivalErr := redistest.Dial(proxies[1].Addr(), kit.WaitLimit)
	if err := errors.Join(holderErr, rivalErr); err != nil {
		return 0, err
	}
	defer holder.Close()
	defer rival.Close()
	sent := time.Now()
	err = expectReply(holder, wantValidity, "LOCK", key, "t", "PX", kit.Millis(keptTTL), "KEEPALIVE", "MAXHOLD", kit.Millis(maxHold))
	granted := time.Now()
	err = errors.Join(err, expectReply(rival, wantValidity, "LOCK", key, "rival", "PX", "10000", "BLOCK", maxWait))
	late := time.Since(granted) - maxHold
	if early := time.Since(sent) - maxHold; early < 0 {
		late = early
	}
	return 100 * late.Seconds() / maxHold.Seconds(), err
}

// cutTest cuts connections of holders, and records when clients relied on the locks.
type cutTest struct {
	proxies [2]*harness.Proxy
	random  func(limit time.Duration) time.Duration

	mu                 sync.Mutex
	pushes, latePushes int
}

// TestKeptLocksOfCutConnections cuts the connections of holders silently, in one direction or both.
// It checks that no next holder gets the lock while the holder may still rely on it: until the
// moment E of docs/keepalive.md.
func TestKeptLocksOfCutConnections(t *testing.T) {
	cuts, seed := int(kit.SizeFrom(t, cutsEnv, defaultCuts)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	const keys = 50
	c := &cutTest{proxies: startProxyPair(t), random: randomUpTo(seed)}
	histories := make([]*holdings.History, keys)
	kit.Must(t, parallel(min(keys, cuts), keys, func(k int) error {
		histories[k] = holdings.NewHistory()
		for n := k; n < cuts; n += keys {
			if err := c.run(n, fmt.Sprint("cut:", k), histories[k]); err != nil {
				return err
			}
		}
		return nil
	}))
	t.Logf("%d cuts; the holders read %d pushes, of which %d were late (seed %d)", cuts, c.pushes, c.latePushes, seed)
	for _, history := range histories[:min(keys, cuts)] {
		if found := history.Overlaps(); len(found) > 0 {
			t.Errorf("%d OVERLAPS, such as: %v", len(found), found[0])
		}
	}
	if c.pushes < cuts/2 || cuts >= defaultCuts && c.latePushes == 0 {
		t.Error("too few pushes: this shows nothing")
	}
}

// cutTTL is the TTL of the locks, cutMaxHold their MAXHOLD.
const cutTTL, cutMaxHold = 3 * time.Second, 9 * time.Second

// run lets one client keep a lock over a link, cuts the link, and lets another client take the
// lock.
func (c *cutTest) run(n int, key string, history *holdings.History) error {
	link, err := faultlink.New(c.proxies[0].Addr())
	if err != nil {
		return err
	}
	defer link.Close()
	holder, err := redistest.Dial(link.Addr(), kit.WaitLimit)
	if err != nil {
		return err
	}
	defer holder.Close()
	rival, err := redistest.Dial(c.proxies[1].Addr(), kit.WaitLimit)
	if err != nil {
		return err
	}
	defer rival.Close()
	if _, err := holder.Do("HELLO", "3"); err != nil {
		return err
	}
	token := strconv.Itoa(n)
	lock := []string{"LOCK", key, token, "PX", kit.Millis(cutTTL), "KEEPALIVE", "MAXHOLD", kit.Millis(cutMaxHold), "BLOCK", maxWait, "AT"}
	sent := history.Now()
	reply, err := holder.Do(lock...)
	for kit.IsLate(reply) {
		sent = history.Now()
		reply, err = holder.Do(lock...)
	}
	granted := history.Now()
	start, expiry, err := leaseOf(sent, reply, err)
	if err != nil {
		return err
	}
	var cutter, next sync.WaitGroup
	var cutErr, nextErr error
	cutter.Go(func() { cutErr = c.cut(link, n) })
	next.Go(func() {
		nextErr = expectReply(rival, wantValidity, "LOCK", key, token+" next", "PX", "60000", "BLOCK", maxWait)
		takenAt := history.Now()
		time.Sleep(10 * time.Millisecond) // the next holder works
		history.Add(holdings.NewHolding(token+" next", takenAt, takenAt+time.Minute, history.Now()))
		nextErr = errors.Join(nextErr, expectReply(rival, int64(1), "UNLOCK", key, token+" next"))
	})
	expiry = c.follow(holder, history, expiry, start+cutMaxHold*99/100)
	history.Add(holdings.NewHolding(token, granted, expiry, 0))
	cutter.Wait()
	next.Wait()
	return errors.Join(cutErr, nextErr)
}

// leaseOf returns the start and the end of the lease in the reply to a LOCK with AT. sent is the
// time at which a RESP3 client sent the LOCK.
func leaseOf(sent time.Duration, reply any, err error) (start, end time.Duration, _ error) {
	fields, _ := reply.(map[string]any)
	validity, hasValidity := fields["validity"].(int64)
	waited, hasWaited := fields["waited"].(int64)
	if err != nil || !hasValidity || !hasWaited {
		return 0, 0, fmt.Errorf("LOCK: got %v, want a grant: %w", reply, orWrongReply(err))
	}
	start = sent + time.Duration(waited)*time.Millisecond
	return start, start + time.Duration(validity)*time.Millisecond, nil
}

// cut cuts a link after a while, in a direction that depends on n. Half of the cuts last until the
// lock has ended. The other cuts end after a while, so that pushes arrive late, and then the
// connection breaks.
func (c *cutTest) cut(link *faultlink.Link, n int) error {
	time.Sleep(c.random(cutTTL)) // the proxy renews the lock
	cuts := []func() error{link.CutRequests, link.CutReplies, link.Cut}
	if err := cuts[n%len(cuts)](); err != nil || n%2 == 0 {
		return err
	}
	time.Sleep(c.random(cutTTL)) // the proxy renews the lock
	if err := link.Heal(); err != nil {
		return err
	}
	time.Sleep(c.random(cutTTL / 20)) // some pushes arrive
	link.Reset()
	return nil
}

// follow reads pushes, and returns the moment E until which the client may rely on its lock, by the
// rules of docs/keepalive.md. E is at most limit.
func (c *cutTest) follow(client *redistest.Client, history *holdings.History, expiry, limit time.Duration) time.Duration {
	for expiry = min(expiry, limit); history.Now() < expiry; {
		client.SetTimeout(max(time.Nanosecond, expiry-history.Now()))
		reply, err := client.Receive()
		now := history.Now()
		push, _ := reply.(redistest.Push)
		if err != nil || len(push) != 4 || now >= expiry {
			return expiry
		}
		validity, isKept := push[3].(int64)
		if !isKept {
			return min(expiry, now)
		}
		byPush := now + time.Duration(validity)*time.Millisecond
		c.countPush(byPush > expiry+cutTTL/3+cutTTL/10)
		expiry = min(byPush, expiry+cutTTL/3, limit)
	}
	return expiry
}

func (c *cutTest) countPush(isLate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pushes++; isLate {
		c.latePushes++
	}
}

// TestKeptLockDuringMinorityFailures checks that a lock of 6 s is kept without a gap while
// minorities of the masters are stopped or cut off from one proxy or both.
func TestKeptLockDuringMinorityFailures(t *testing.T) {
	redistest.SkipShort(t)
	duration, err := time.ParseDuration(cmp.Or(os.Getenv(keptTimeEnv), "30s"))
	kit.Must(t, err)
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	f := kit.StartLinkedFleet(t, 2)
	k := &watchedLock{holder: kit.Connect(t, f.Proxies[0]), began: time.Now()}
	kit.Do(t, k.holder, "HELLO", "3")
	kit.Must(t, errors.Join(k.request("LOCK"), k.receive()))
	disturber := faults.StartDisturber(f, seed, faults.FaultsWithoutDataLoss()...)
	watched := make(chan error, 1)
	go func() { watched <- k.watch(duration) }()
	rivalReplies, err := countReplies(kit.Connect(t, f.Proxies[1]), watched)
	counts, stopErr := disturber.Stop()
	t.Logf("the lock was kept for %v by %d renewals and %d EXTENDs; faults %v; replies to the rival %v; seed %d", time.Since(k.began),
		k.renewals, k.extensions, counts, rivalReplies, seed)
	kit.Must(t, errors.Join(err, stopErr))
}

// countReplies lets a client try to take a lock that another client keeps until watched has a
// value. It returns how often each reply came, and an error if the lock was granted.
func countReplies(rival *redistest.Client, watched <-chan error) (map[string]int, error) {
	replies := map[string]int{}
	for {
		select {
		case err := <-watched:
			return replies, err
		case <-time.After(20 * time.Millisecond): // polls
		}
		reply, err := rival.Do("LOCK", "k", "rival", "PX", "10000")
		if _, granted := reply.(int64); granted || err != nil {
			return replies, errors.Join(err, <-watched, fmt.Errorf("the rival's LOCK: %v", reply))
		}
		replies[kit.FirstWord(kit.ReplyText(reply))]++
	}
}

// watchedLock is a client with a kept lock of watchedTTL. It computes the moment E of
// docs/keepalive.md.
type watchedLock struct {
	holder       *redistest.Client
	began        time.Time
	sent, expiry time.Duration // the last request, and E, since began
	asked        bool          // the last request has no reply yet
	renewals     int
	extensions   int // the number of EXTENDs
}

const watchedTTL = 6 * time.Second

func (k *watchedLock) request(command string) error {
	k.sent, k.asked = time.Since(k.began), true
	return k.holder.Send(redistest.AppendCommand(nil, command, "k", "t", "PX", kit.Millis(watchedTTL), "KEEPALIVE"))
}

// receive reads the next reply or push. It returns an error if the client may not rely on the lock
// any more.
func (k *watchedLock) receive() error {
	reply, err := k.holder.Receive()
	now := time.Since(k.began)
	if err != nil || k.expiry > 0 && now >= k.expiry {
		return fmt.Errorf("a gap: %v came after %v, and E was %v: %w", reply, now, k.expiry, orWrongReply(err))
	}
	switch reply := reply.(type) {
	case int64:
		k.asked, k.expiry = false, k.sent+time.Duration(reply)*time.Millisecond
		return nil
	case redistest.RespError: // an EXTEND without a quorum changes nothing
		k.asked = false
		return nil
	case redistest.Push:
		if validity, isKept := reply[len(reply)-1].(int64); isKept {
			return k.noteRenewal(now + time.Duration(validity)*time.Millisecond)
		}
	}
	return fmt.Errorf("after %v: %v", now, reply)
}

// noteRenewal processes a push by the rules of docs/keepalive.md. It sends an EXTEND if E is too
// early because the proxy left out pushes.
func (k *watchedLock) noteRenewal(byPush time.Duration) error {
	k.renewals++
	k.expiry = min(byPush, k.expiry+watchedTTL/3)
	if k.asked || byPush-k.expiry < watchedTTL/6 {
		return nil
	}
	k.extensions++
	return k.request("EXTEND")
}

// watch follows the lock for a time.
func (k *watchedLock) watch(duration time.Duration) error {
	for time.Since(k.began) < duration {
		if err := k.receive(); err != nil {
			return err
		}
	}
	return nil
}
