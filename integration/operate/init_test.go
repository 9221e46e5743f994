//go:build integration

package operate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// initMasters runs init with the given masters.
func initMasters(t *testing.T, masters []*redistest.Server, args ...string) outcome {
	t.Helper()
	command := []string{"init"}
	for _, master := range masters {
		command = append(command, "--master", master.URL())
	}
	return runProxy(t, append(command, args...)...)
}

// wantInit fails the test unless init has the given exit code and its output contains a text.
func wantInit(t *testing.T, got outcome, code int, text string) {
	t.Helper()
	if got.code != code || !strings.Contains(got.stdout+got.stderr, text) {
		t.Fatalf("got %d and\n%s%swant %d and %q", got.code, got.stdout, got.stderr, code, text)
	}
}

// wantRemedy fails the test unless LOCK is refused with an error that contains the remedy.
func wantRemedy(t *testing.T, proxy *harness.Proxy, texts ...string) {
	t.Helper()
	text := fmt.Sprint(kit.Do(t, kit.Connect(t, proxy), "LOCK", "k", "t", "PX", "1000"))
	for _, part := range append(texts, "NOQUORUM ", "ready in 24h1",
		"if you know it, or the masters are new, run redlock-proxy init") {
		if !strings.Contains(text, part) {
			t.Errorf("got %s\nwant %q in it", text, part)
		}
	}
}

// TestRemedyForNewMasters checks that the error and the log name the remedy if the masters are new
// and a proxy does not know that. --fresh-start still works, although a proxy has left its record.
func TestRemedyForNewMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := &kit.Fleet{Masters: kit.StartMasters(t)}
	first := kit.StartProxy(t, redistest.URLs(f.Masters), "--fresh-start=false")
	wantRemedy(t, first, "5 were empty when first seen: they are new, or have lost their data",
		"the longest TTL in use is unknown, so")
	kit.WantLogged(t, first, "run redlock-proxy init")
	f.Proxies = append(f.Proxies, first, kit.StartProxy(t, redistest.URLs(f.Masters), "--fresh-start"))
	f.WantVoting(t, 5)
	kit.WantGrant(t, kit.Connect(t, first), "LOCK", "k", "t", "PX", "1000")
}

// TestConcurrentInits runs init twice at the same time, while a proxy waits for the masters. Both
// runs succeed, and then there is nothing to do.
func TestConcurrentInits(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := kit.StartFleet(t, "--fresh-start=false")
	var got [2]outcome
	var inits sync.WaitGroup
	for i := range got {
		inits.Go(func() { got[i] = initMasters(t, f.Masters, "--longest-ttl", "0s") })
	}
	inits.Wait()
	for _, result := range got {
		wantInit(t, result, 0, "5 of 5 masters vote\n")
	}
	f.WantVoting(t, 5)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "60000")
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "0s"), 0, "nothing to do: a majority of the masters votes\n")
	if kit.TryLockAgain(t, kit.Connect(t, f.Proxies[0])) {
		t.Error("the lock was granted twice")
	}
}

// TestInitConfirmation checks that init asks the operator if the flag is missing. Without a reply,
// init changes nothing.
func TestInitConfirmation(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	got := initMasters(t, masters)
	wantInit(t, got, 1, "For how long may an earlier lock still be held?")
	wantInit(t, got, 1, "redlock-proxy: no answer on standard input; use --longest-ttl")
	wantInit(t, initMasters(t, masters, "--longest-ttl", "soon"), 1, `--longest-ttl: "soon" is not a duration`)
	wantInit(t, initMasters(t, masters, "--longest-ttl", "25h"), 1, "25h0m0s is longer than max-ttl 24h0m0s")
	for _, master := range masters {
		if size, err := kit.QueryDatabase(master, "0", "DBSIZE"); err != nil || size != int64(0) {
			t.Errorf("master %s: %v keys, %v, want none", master.Addr(), size, err)
		}
	}
}

// TestInitWaitsForMasters checks that init waits for a master that is still starting, for example
// because the previous command in the README started it.
func TestInitWaitsForMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters := kit.StartMasters(t)
	kit.Must(t, masters[0].Kill())
	var got outcome
	var initRun sync.WaitGroup
	initRun.Go(func() { got = initMasters(t, masters, "--longest-ttl", "0s") })
	time.Sleep(time.Second / 2) // init finds a master down, and waits
	kit.Must(t, masters[0].Restart())
	initRun.Wait()
	wantInit(t, got, 0, "5 of 5 masters vote\n")
}

// TestInitRefusals checks that init refuses if locks contradict the operator, or if a master is not
// available.
func TestInitRefusals(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := kit.StartFleet(t)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "60000")
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") })
	kit.Must(t, f.Proxies[0].Kill())
	// After the restarts no master votes: each master might have lost more than the lock.
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "SAVE"))
		kit.Must(t, master.RestartWithData())
	}
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "10s"), 2, "it holds 1 lock, for up to ")
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "10s"), 2, `such as "k"; `)
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "10s"), 2,
		"if no client holds these locks any more, use --force")
	kit.Must(t, f.Masters[1].Kill())
	for _, master := range f.Masters[2:] {
		kit.Must(t, kit.SendToMaster(master, "DEL", "k"))
	}
	kit.Must(t, kit.SendToMaster(f.Masters[0], "DEL", "k"))
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "10s"), 2, f.Masters[1].Addr()+": connection refused")
}

// TestInitForced lets all masters lose their data while a proxy knows of a lock without a TTL. The
// error names the lock. An operator who knows that the lock is no longer held confirms that. No
// process has to be stopped, and no data deleted.
func TestInitForced(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t, "--lock-keys", "lock:*")
	client := kit.Connect(t, f.Proxies[0])
	kit.Want(t, client, "OK", "SET", "lock:a", "me", "NX")
	for _, master := range f.Masters {
		kit.Must(t, master.Restart())
	}
	f.WantVoting(t, 0)
	got := initMasters(t, f.Masters, "--longest-ttl", "1s")
	_, port, _ := strings.Cut(f.Proxies[0].Addr(), ":")
	wantInit(t, got, 3, "too few masters vote, or will vote within ")
	wantInit(t, got, 3, ":"+port+" knows of locks with a TTL of up to 24h0m0s\nnext: if none of these locks is held any more: redlock-proxy init --longest-ttl 1s --force\n")
	if reply := fmt.Sprint(kit.Do(t, client, "SET", "lock:a", "you", "NX")); !strings.Contains(reply, "ready in 24h1") {
		t.Errorf("before it is forced: %s", reply)
	}
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "1s", "--force"), 0, "5 of 5 masters vote\n")
	f.WantVoting(t, 5)
	kit.Want(t, client, "OK", "SET", "lock:a", "you", "NX")
	// Now each master has a record of a longer TTL, and no proof of its data.
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "SAVE"))
		kit.Must(t, master.RestartWithData())
	}
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "1s"), 2, `it holds 1 lock, without a TTL, such as "lock:a"`)
	wantInit(t, initMasters(t, f.Masters, "--longest-ttl", "1s", "--force"), 0, "5 of 5 masters vote\n")
	f.WantVoting(t, 5)
}

// TestInitOnce checks that a deployment that runs init --once at every start initializes the
// masters only once. This holds even if the masters lose their data later.
func TestInitOnce(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	file := filepath.Join(t.TempDir(), "done")
	wantInit(t, initMasters(t, masters, "--longest-ttl", "0s", "--once", file), 0, "5 of 5 masters vote")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	for _, master := range masters {
		kit.Must(t, master.Restart())
	}
	wantInit(t, initMasters(t, masters, "--longest-ttl", "0s", "--once", file), 0,
		"nothing to do: init has run before ("+file+" exists)")
	for _, master := range masters {
		if size, err := kit.QueryDatabase(master, "0", "DBSIZE"); err != nil || size != int64(0) {
			t.Errorf("master %s: %v keys, %v, want none", master.Addr(), size, err)
		}
	}
}

// TestInitOnceInterrupted checks that an init --once that was interrupted does not count as done. A
// later init --once does not repeat it, because locks may have been granted since then. After an
// init without --once, the interrupted init counts as done.
func TestInitOnceInterrupted(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	file := filepath.Join(t.TempDir(), "done")
	args := []string{"init", "--longest-ttl", "0s", "--once", file}
	for _, url := range redistest.URLs(masters) {
		args = append(args, "--master", url)
	}
	process := kit.ProxyCommand(t, args...)
	kit.Must(t, process.Start())
	kit.Eventually(t, func() error { _, err := os.Stat(file); return err })
	kit.Must(t, process.Process.Signal(syscall.SIGINT))
	_ = process.Wait() // the process fails, because it was interrupted
	runInitOnce := func() outcome { return initMasters(t, masters, "--longest-ttl", "0s", "--once", file) }
	got := runInitOnce()
	if want := "an earlier init did not complete: " + file + " says that it has begun; run redlock-proxy init without --once"; got.code != 3 ||
		!strings.Contains(got.stderr, want) {
		t.Errorf("exit code %d and\n%s%swant 3 and %s", got.code, got.stdout, got.stderr, want)
	}
	wantInit(t, initMasters(t, masters, "--longest-ttl", "0s"), 0, "5 of 5 masters vote")
	wantInit(t, runInitOnce(), 0, "nothing to do: ")
	wantInit(t, runInitOnce(), 0, "nothing to do: init has run before ("+file+" exists)")
}

// TestProxyRestartKeepsWait lets a majority lose its data, and restarts the proxy that knows the
// longest TTL in use. The proxy waits for that TTL again, and not for max-ttl, because it had
// recorded the TTL on these masters.
func TestProxyRestartKeepsWait(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	const ttl = 10 * time.Second
	f := kit.StartLinkedFleet(t, 1, "--key-prefix", "")
	client := kit.Connect(t, f.Proxies[0])
	requested := time.Now()
	f.RunWhileUnreachable(t, []int{3, 4}, func() { kit.WantGrant(t, client, "LOCK", "k", "t", "PX", fmt.Sprint(ttl.Milliseconds())) })
	for _, master := range f.Masters[:3] {
		kit.Must(t, master.Kill())
	}
	for _, master := range f.Masters[:3] {
		kit.Must(t, master.Restart())
	}
	for _, master := range f.Masters[:3] {
		kit.Eventually(t, func() error {
			record, err := kit.QueryDatabase(master, "0", "GET", "redlock-proxy:quarantine")
			// The record has the TTL of 10 s, rounded up.
			if text := fmt.Sprint(record); err != nil || !strings.HasSuffix(text, " restarted 10240") {
				return fmt.Errorf("the record says %s, %v, want 10240 ms", text, err)
			}
			return nil
		})
	}
	kit.Must(t, f.Proxies[0].Kill())
	restarted := kit.StartProxy(t, kit.LinkURLs(f.Links[0]), "--fresh-start=false")
	rival := kit.Connect(t, restarted)
	reply := kit.Do(t, rival, "LOCK", "k", "u", "PX", "1000")
	// On a slow machine the wait may have ended already. The test checks below that it was long
	// enough.
	_, waitHasEnded := reply.(int64)
	text := fmt.Sprint(reply)
	if !waitHasEnded && !strings.Contains(text, "2 of 5 masters vote: 3 restarted without proof of their data, ready in ") ||
		strings.Contains(text, "max-ttl") {
		t.Errorf("got %s", text)
	}
	kit.Eventually(t, func() error {
		if _, granted := kit.Do(t, rival, "LOCK", "k", "u", "PX", "1000").(int64); !granted {
			return fmt.Errorf("no lock yet")
		}
		return nil
	})
	if elapsed := time.Since(requested); elapsed < ttl {
		t.Errorf("DOUBLE GRANT: %v after the first", elapsed)
	}
}

// TestInitReportsMissingVotes runs init for one known master and two new masters. Too few masters
// vote: proxies with other masters use the known master, and it knows a longer TTL than the
// operator claims. init reports that, and exits with an error.
func TestInitReportsMissingVotes(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := kit.StartFleet(t)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "3600000")
	kit.Eventually(t, func() error { // the first grant may have come from other masters
		longest, err := kit.QueryDatabase(f.Masters[0], "0", "GET", "redlock-proxy:longest")
		if err == nil && longest == nil {
			err = fmt.Errorf("master %s does not know of the lock's TTL", f.Masters[0].Addr())
		}
		return errors.Join(err, kit.CheckToken(f.Masters[0], "0", "k", "t"))
	})
	kit.Must(t, f.Proxies[0].Kill())
	kit.Must(t, kit.SendToMaster(f.Masters[0], "DEL", "k"))
	masters := []*redistest.Server{f.Masters[0], kit.StartRedis(t), kit.StartRedis(t)}
	got := initMasters(t, masters, "--longest-ttl", "0s")
	wantInit(t, got, 3, masters[0].Addr()+": does not vote for proxies with these settings: is in use by proxies with different settings (masters: ")
	wantInit(t, got, 3, "0 of 3 masters vote\n")
	// Earlier versions leave the master in this state.
	kit.Must(t, kit.SendToMaster(masters[0], "DEL", "redlock-proxy:rules"))
	got = initMasters(t, masters, "--longest-ttl", "0s")
	wantInit(t, got, 3, "1 of 3 masters vote\n")
	wantInit(t, got, 3, "empty when first seen")
	wantInit(t, got, 3, "too few masters vote")
}
