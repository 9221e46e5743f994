//go:build integration

package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// forgetful is a way in which a master can forget a lock, and start afresh as if nothing had been.
type forgetful struct {
	name   string
	db     string                           // the database of the lock
	before func(*harness.Redis) error       // done before the lock is taken
	forget func(f *fleet, master int) error // done to a master that holds it
}

func forgetfuls() []forgetful {
	nothing := func(*harness.Redis) error { return nil }
	return []forgetful{
		{"killed without its data", "0", nothing, func(f *fleet, i int) error { return f.masters[i].Restart() }},
		{"FLUSHALL", "0", nothing, func(f *fleet, i int) error { return tell(f.masters[i], "FLUSHALL") }},
		{"FLUSHDB of the lock's database", "5", nothing, func(f *fleet, i int) error { return tellIn(f.masters[i], "5", "FLUSHDB") }},
		{"replica of another and back", "0", nothing, replicate},
		{"restarted from an older RDB", "0", func(r *harness.Redis) error { return tell(r, "SAVE") },
			func(f *fleet, i int) error { return f.masters[i].Revive() }},
	}
}

// tell sends one command to a master and wants no error.
func tell(master *harness.Redis, command ...string) error { return tellIn(master, "0", command...) }

func tellIn(master *harness.Redis, db string, command ...string) error {
	_, err := askIn(master, db, command...)
	return err
}

// askIn sends one command to a database of a master; an error reply is an error.
func askIn(master *harness.Redis, db string, command ...string) (any, error) {
	client, err := harness.Dial(master.Addr(), patience)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, err := client.Do("SELECT", db); err != nil {
		return nil, err
	}
	reply, err := client.Do(command...)
	if failure, bad := reply.(harness.RespError); bad {
		return nil, failure
	}
	return reply, err
}

// replicate makes a master a replica of the last one, which holds no lock, until it has its data, and then a master again.
func replicate(f *fleet, i int) error {
	host, port, _ := strings.Cut(f.masters[len(f.masters)-1].Addr(), ":")
	if err := tell(f.masters[i], "REPLICAOF", host, port); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		info, err := askIn(f.masters[i], "0", "INFO", "replication")
		switch text, _ := info.(string); {
		case err != nil:
			return err
		case strings.Contains(text, "master_link_status:up"):
			return tell(f.masters[i], "REPLICAOF", "NO", "ONE")
		case time.Now().After(end):
			return fmt.Errorf("master %s does not synchronise: %s", f.masters[i].Addr(), text)
		}
	}
}

// TestMasterThatForgot: a lock stands on three masters of five, one of them forgets it, and another client of another proxy tries to
// get it all the time. With the guard off it gets it; with the guard on it does not, and the master soon votes again and holds it.
func TestMasterThatForgot(t *testing.T) {
	for _, way := range forgetfuls() {
		for _, guard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, guard %v", way.name, guard), func(t *testing.T) {
				f := startGuarded(t, guard, 2)
				holder, rival := connect(t, f.proxies[0]), connect(t, f.proxies[1])
				for _, client := range []*harness.Client{holder, rival} {
					want(t, client, "OK", "SELECT", way.db)
					do(t, client, "LOCK", "warm", "w", "PX", "60000") // every proxy has met the database
				}
				must(t, way.before(f.masters[2]))
				f.holdOnThree(t, holder, way.db)
				must(t, way.forget(f, 2))
				switch stolen := steal(t, rival); {
				case !guard && !stolen:
					t.Error("the lock was not granted twice with the guard off, so this shows nothing")
				case guard && stolen:
					t.Error("the lock was granted twice")
				case guard:
					f.wantVoting(t, 5)
					if err := stands(f.masters[2], way.db, "k", "t"); err != nil {
						t.Error(err)
					}
					if reply := do(t, rival, "LOCK", "k", "u", "PX", "60000"); reply != nil {
						t.Errorf("all vote again: LOCK k: got %v, want nil", reply)
					}
				}
			})
		}
	}
}

// startGuarded starts five masters and so many proxies.
func startGuarded(t *testing.T, guard bool, proxies int) *fleet {
	t.Helper()
	f := &fleet{masters: startMasters(t)}
	for range proxies {
		f.proxies = append(f.proxies, startProxy(t, harness.URLs(f.masters), "--guard="+strconv.FormatBool(guard)))
	}
	if guard {
		f.wantVoting(t, 5)
	}
	return f
}

// holdOnThree takes the lock k with the token t and removes it from two masters, as if they had never answered.
func (f *fleet) holdOnThree(t *testing.T, client *harness.Client, db string) {
	t.Helper()
	wantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	everywhere(t, f.masters, func(master *harness.Redis) error { return stands(master, db, "k", "t") })
	for _, master := range f.masters[3:] {
		must(t, tellIn(master, db, "DEL", "k"))
	}
}

// steal tries to get the lock k for two seconds, in which a master that forgot votes again.
func steal(t *testing.T, client *harness.Client) bool {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, granted := do(t, client, "LOCK", "k", "u", "PX", "60000").(int64); granted {
			return true
		}
	}
	return false
}

// wantVoting wants so many masters to vote soon, as every proxy sees it.
func (f *fleet) wantVoting(t *testing.T, n int) {
	t.Helper()
	for _, proxy := range f.proxies {
		client := connect(t, proxy)
		soon(t, func() error {
			if info := fmt.Sprint(do(t, client, "PROXY", "INFO")); !strings.Contains(info, fmt.Sprintf("redlock_masters_voting:%d\r\n", n)) {
				return fmt.Errorf("not %d masters vote:\n%s", n, info)
			}
			return nil
		})
	}
}

// soon waits for a condition as long as patience: longer than a quarantine that ends by a catch-up.
func soon(t *testing.T, condition func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	err := condition()
	for ; err != nil && time.Now().Before(end); err = condition() {
		time.Sleep(5 * time.Millisecond)
	}
	must(t, err)
}

// TestMastersForgetInTurn: one master after another restarts without its data, each as soon as the one before votes again, and in the
// end the lock that stood on all of them still does.
func TestMastersForgetInTurn(t *testing.T) {
	f := startGuarded(t, true, 2)
	client := connect(t, f.proxies[0])
	wantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	everywhere(t, f.masters, func(master *harness.Redis) error { return stands(master, "0", "k", "t") })
	for i, master := range f.masters {
		must(t, master.Restart())
		f.wantVotingFrom(t, i)
		must(t, stands(master, "0", "k", "t"))
	}
	want(t, client, int64(1), "UNLOCK", "k", "t")
}

// wantVotingFrom wants a master that was just restarted to have a marker, and then all to vote.
func (f *fleet) wantVotingFrom(t *testing.T, i int) {
	t.Helper()
	soon(t, func() error {
		if marker, err := askIn(f.masters[i], "0", "GET", "redlock-proxy:marker"); err != nil || marker == nil {
			return fmt.Errorf("master %s has no marker: %v", f.masters[i].Addr(), err)
		}
		return nil
	})
	f.wantVoting(t, 5)
}

// TestDurableMasterVotesAgainAtOnce: it was killed, and has all that it had agreed to.
func TestDurableMasterVotesAgainAtOnce(t *testing.T) {
	f := &fleet{}
	for range 3 {
		f.masters = append(f.masters, startRedis(t, "--appendonly", "yes", "--appendfsync", "always"))
	}
	f.proxies = append(f.proxies, startProxy(t, harness.URLs(f.masters)))
	f.wantVoting(t, 3)
	client := connect(t, f.proxies[0])
	wantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	everywhere(t, f.masters, func(master *harness.Redis) error { return stands(master, "0", "k", "t") })
	for _, master := range f.masters { // all at once: nobody could be copied from
		must(t, master.Kill())
	}
	for _, master := range f.masters {
		must(t, master.Revive())
	}
	revived := time.Now()
	soon(t, func() error {
		if reply := do(t, client, "LOCK", "k", "u", "PX", "60000"); reply != nil {
			return fmt.Errorf("LOCK k: got %v, want nil", reply)
		}
		return nil
	})
	f.wantVoting(t, 3)
	t.Logf("all vote again %v after the last was back", time.Since(revived).Round(time.Millisecond))
	for _, master := range f.masters {
		must(t, stands(master, "0", "k", "t"))
	}
	if !strings.Contains(f.proxies[0].Log(), "proof=remark") || strings.Contains(f.proxies[0].Log(), "proof=lease") {
		t.Error("they were admitted for another reason")
	}
}

// TestAllForgetAtOnce: no lock until the longest lease in use is over; then locks again.
func TestAllForgetAtOnce(t *testing.T) {
	f := startGuarded(t, true, 1)
	client := connect(t, f.proxies[0])
	const ttl = 4 * time.Second
	wantGrant(t, client, "LOCK", "k", "t", "PX", strconv.Itoa(int(ttl.Milliseconds())))
	held := time.Now()
	for _, master := range f.masters {
		must(t, master.Kill())
	}
	for _, master := range f.masters {
		must(t, master.Restart())
	}
	told := false
	for end := time.Now().Add(4 * ttl); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		reply := do(t, client, "LOCK", "k", "u", "PX", "4000")
		if text := fmt.Sprint(reply); strings.HasPrefix(text, "NOQUORUM 0 of 5 masters vote: 5 restarted without proof of their data, ready in ") && !told {
			told = true
			t.Log(text)
		}
		if _, granted := reply.(int64); granted {
			if after := time.Since(held); after < ttl || !told {
				t.Errorf("granted %v after the first, and told so before: %v", after, told)
			}
			return
		}
	}
	t.Error("there is no lock any more")
}

// TestUnmarkedMastersWait: without a fresh start a proxy does not trust masters that nobody has marked.
func TestUnmarkedMastersWait(t *testing.T) {
	masters := startMasters(t)
	proxy := startProxy(t, harness.URLs(masters), "--fresh-start=false", "--max-ttl", "30s")
	text := fmt.Sprint(do(t, connect(t, proxy), "LOCK", "k", "t", "PX", "1000"))
	if !strings.HasPrefix(text, "NOQUORUM 0 of 5 masters vote: 5 restarted without proof of their data, ready in ") {
		t.Errorf("got %s", text)
	}
	startProxy(t, harness.URLs(masters)) // neither does a fresh start beside it
	if text := fmt.Sprint(do(t, connect(t, proxy), "LOCK", "k", "t", "PX", "1000")); !strings.HasPrefix(text, "NOQUORUM 0 of 5") {
		t.Errorf("with another proxy at its fresh start: got %s", text)
	}
}

// TestManyLocksAreCaughtUp: 10,000 of them, some in another database, some without an end.
func TestManyLocksAreCaughtUp(t *testing.T) {
	const locks = 10_000
	f := startGuarded(t, true, 2)
	client := connect(t, f.proxies[0])
	const chunk = 1000
	for from := 0; from < locks; from += chunk {
		if from == locks/2 {
			want(t, client, "OK", "SELECT", "2")
		}
		var lines []byte
		for i := range chunk {
			lines = harness.AppendCommand(lines, "LOCK", fmt.Sprint("k", from+i), "t", "PX", "600000")
		}
		must(t, client.Send(lines))
		for range chunk {
			if reply, err := client.Receive(); err != nil || reply.(int64) <= 0 {
				t.Fatalf("LOCK: %v, %v", reply, err)
			}
		}
	}
	for _, master := range f.masters[1:4] { // as another Redlock client has it
		must(t, tell(master, "SET", "endless", "t"))
	}
	must(t, f.masters[2].Kill())
	must(t, f.masters[2].Restart())
	restarted := time.Now()
	f.wantVotingFrom(t, 2)
	t.Logf("it votes again %v after its restart", time.Since(restarted).Round(time.Millisecond))
	for db, keys := range map[string]int{"0": locks/2 + 1, "2": locks / 2} {
		scanned, err := askIn(f.masters[2], db, "EVAL", `local n = 0
for _, key in ipairs(redis.call('keys', '[ke]*')) do
  if redis.call('get', key) == 't' and (redis.call('pttl', key) > 500000 or key == 'endless') then n = n + 1 end
end
return n`, "0")
		if err != nil || scanned != int64(keys) {
			t.Errorf("database %s: it holds %v locks, %v, want %d", db, scanned, err, keys)
		}
	}
	if left, err := askIn(f.masters[2], "0", "PTTL", "endless"); err != nil || left != int64(-1) {
		t.Errorf("PTTL endless: %v, %v, want -1", left, err)
	}
	if logs := f.proxies[0].Log() + f.proxies[1].Log(); strings.Count(logs, "master caught up") != 1 {
		t.Error("two proxies did not do the work once")
	}
}

// TestUnfitMaster: it is no master, and is told so.
func TestUnfitMaster(t *testing.T) {
	f := startGuarded(t, true, 1)
	// Not of a master: its first replica gives a server another master_replid, and a master that has one is in quarantine, too.
	host, port, _ := strings.Cut(startRedis(t).Addr(), ":")
	must(t, tell(f.masters[4], "REPLICAOF", host, port))
	must(t, tell(f.masters[3], "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"))
	client := connect(t, f.proxies[0])
	f.wantVoting(t, 3)
	soon(t, func() error {
		info := fmt.Sprint(do(t, client, "PROXY", "INFO"))
		for _, part := range []string{"state=unfit,cause=it is a replica", "state=unfit,cause=maxmemory-policy allkeys-lru may evict a lock"} {
			if !strings.Contains(info, part) {
				return fmt.Errorf("no %q in\n%s", part, info)
			}
		}
		return nil
	})
	wantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	must(t, tell(f.masters[4], "REPLICAOF", "NO", "ONE"))
	must(t, tell(f.masters[3], "CONFIG", "SET", "maxmemory-policy", "noeviction"))
	f.wantVoting(t, 5)
}
