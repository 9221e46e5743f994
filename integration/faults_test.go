//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// fault is a way in which master number i of a fleet can be out of the reach of its first proxy, and how that ends.
type fault struct {
	name    string
	linked  bool // it needs links
	inflict func(f *fleet, i int) error
	mend    func(f *fleet, i int) error
}

func faults() []fault {
	return []fault{
		{"killed", false,
			func(f *fleet, i int) error { return f.masters[i].Kill() },
			func(f *fleet, i int) error { return f.masters[i].Restart() }},
		{"stopped", false,
			func(f *fleet, i int) error { return f.masters[i].Pause() },
			func(f *fleet, i int) error { return f.masters[i].Continue() }},
		{"unreachable", true,
			func(f *fleet, i int) error { return f.links[0][i].Cut() },
			func(f *fleet, i int) error { return f.links[0][i].Heal() }},
	}
}

// faultNamed is one of faults.
func faultNamed(name string) fault {
	all := faults()
	return all[slices.IndexFunc(all, func(f fault) bool { return f.name == name })]
}

// start starts what the fault can happen to; args are further arguments of the proxy.
func (f fault) start(t *testing.T, args ...string) *fleet {
	t.Helper()
	if f.linked {
		return startLinkedFleet(t, 1, args...)
	}
	return startFleet(t, args...)
}

// comeback is how long masters may be back before they are used again.
const comeback = 3 * time.Second

// TestTwoOfFiveFail: locks go on without a single error while a minority fails, is gone, and comes back.
func TestTwoOfFiveFail(t *testing.T) {
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			f := fault.start(t)
			load := startLoad(t, f.proxies[0], 16, false)
			time.Sleep(300 * time.Millisecond)
			for i := range 2 {
				must(t, fault.inflict(f, i))
			}
			time.Sleep(1200 * time.Millisecond)
			for i := range 2 {
				must(t, fault.mend(f, i))
			}
			f.wantAllUsed(t)
			load.stop().wantFlawless(t)
		})
	}
}

// TestThreeOfFiveFail: without a majority there is an error in time that names every cause, and nothing is left behind: not on the
// living masters, nor on the others when they are back.
func TestThreeOfFiveFail(t *testing.T) {
	for _, fault := range faults() {
		t.Run(fault.name, func(t *testing.T) {
			// With the guard, three that were killed would have to wait until their locks are over: TestAllForgetAtOnce.
			f := fault.start(t, "--guard=false")
			client := connect(t, f.proxies[0])
			wantGrant(t, client, "LOCK", "before", "b", "PX", "60000")
			everywhere(t, f.masters, func(master *harness.Redis) error { return stands(master, "0", "before", "b") })
			for i := range 3 {
				must(t, fault.inflict(f, i))
			}
			f.wantNoQuorum(t, client, "LOCK", "k", "t", "PX", "60000")
			f.wantNoQuorum(t, client, "UNLOCK", "before", "b")
			f.wantNoQuorum(t, client, "LOCK", "k", "u", "PX", "60000", "BLOCK", "5000")
			f.wantNoQuorum(t, client, "EXTEND", "before", "b", "PX", "60000")
			everywhere(t, f.masters[3:], free)
			for i := range 3 {
				must(t, fault.mend(f, i))
			}
			f.wantAllUsed(t)
			everywhere(t, f.masters, free)
			time.Sleep(300 * time.Millisecond) // what comes late, comes now
			everywhere(t, f.masters, free)
		})
	}
}

// free wants neither of the keys of TestThreeOfFiveFail on a master.
func free(master *harness.Redis) error {
	for _, key := range []string{"k", "before"} {
		if err := lacks(master, key); err != nil {
			return err
		}
	}
	return nil
}

// wantNoQuorum wants a command refused, soon, with the causes of the first three masters.
func (f *fleet) wantNoQuorum(t *testing.T, client *harness.Client, command ...string) {
	t.Helper()
	sent := time.Now()
	reply := do(t, client, command...)
	took := time.Since(sent)
	text, _ := reply.(harness.RespError)
	causes, ok := strings.CutPrefix(string(text), "NOQUORUM 2 of 5 masters answered, 3 needed: ")
	if !ok {
		t.Fatalf("%v: got %#v, want NOQUORUM 2 of 5 masters answered, 3 needed: …", command, reply)
	}
	named := strings.Split(causes, "; ")
	for i, name := range f.names()[:3] {
		if len(named) != 3 || !strings.HasPrefix(named[i], name+": ") || len(named[i]) < len(name)+len(": why") {
			t.Fatalf("%v: got the causes %q, want one for each of three masters, the next of %s", command, named, name)
		}
	}
	t.Logf("%s after %v: %s", command[0], took.Round(10*time.Microsecond), text)
	if took > time.Second { // the master timeout is 100 ms, the rest is for a busy machine
		t.Errorf("%v: it took %v", command, took)
	}
}

// wantAllUsed wants a lock to stand on all masters soon.
func (f *fleet) wantAllUsed(t *testing.T) {
	t.Helper()
	client, began := connect(t, f.proxies[0]), time.Now()
	var err error
	for turn := 0; time.Since(began) < comeback; turn++ {
		key := "again:" + strconv.Itoa(turn)
		do(t, client, "LOCK", key, "t", "PX", "10000") // refused, perhaps, so soon
		if err = f.standsSoon(key, "t"); err == nil {
			t.Logf("all five are used again after %v", time.Since(began).Round(time.Millisecond))
			return
		}
	}
	t.Fatalf("not all five masters are used %v after they came back: %v", comeback, err)
}

// standsSoon looks for a key on all masters a few times: the slower of them may follow.
func (f *fleet) standsSoon(key, value string) (err error) {
	for range 5 {
		err = nil
		for _, master := range f.masters {
			if err == nil {
				err = stands(master, "0", key, value)
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// TestLateSet: a stopped master gets the SET of a LOCK that has failed meanwhile out of its socket's buffer when it goes on, and the
// undo behind it.
func TestLateSet(t *testing.T) {
	f := startFleet(t)
	client := connect(t, f.proxies[0])
	wantGrant(t, client, "LOCK", "warm", "t", "PX", "60000") // that TTL is known to be in use, so the next LOCK begins with its SET
	for _, master := range f.masters[:3] {
		recordCommands(t, master)
		must(t, master.Pause())
	}
	f.wantNoQuorum(t, client, "LOCK", "k", "t", "PX", "60000")
	for _, master := range f.masters[:3] {
		must(t, master.Continue())
	}
	f.wantAllUsed(t)
	for _, master := range f.masters[:3] {
		if !executed(t, master, "SET k t NX PX 60000") {
			t.Errorf("master %s never executed the late SET, so this test shows nothing", master.Addr())
		}
	}
	everywhere(t, f.masters, free)
}

// recordCommands has a master keep what it executes from now on.
func recordCommands(t *testing.T, master *harness.Redis) {
	t.Helper()
	client, err := harness.Dial(master.Addr(), patience)
	must(t, err)
	defer client.Close()
	want(t, client, "OK", "CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "10000")
}

// executed reports whether a master has executed a command since recordCommands.
func executed(t *testing.T, master *harness.Redis, command string) bool {
	t.Helper()
	client, err := harness.Dial(master.Addr(), patience)
	must(t, err)
	defer client.Close()
	entries, _ := do(t, client, "SLOWLOG", "GET", "10000").([]any)
	for _, entry := range entries {
		words := fmt.Sprint(entry.([]any)[3]) // number, time, microseconds, words …
		if strings.EqualFold(words, "["+command+"]") {
			return true
		}
	}
	return false
}

// TestMasterRestarts: a master that dies and comes back empty, again and again, is no error for anyone, and keeps no key that is
// free from being granted.
func TestMasterRestarts(t *testing.T) {
	f := startFleet(t)
	load := startLoad(t, f.proxies[0], 16, true)
	for range 6 {
		time.Sleep(rand.N(300 * time.Millisecond))
		must(t, f.masters[0].Kill())
		time.Sleep(rand.N(300 * time.Millisecond))
		must(t, f.masters[0].Restart())
	}
	f.wantAllUsed(t)
	load.stop().wantFlawless(t)
}
