//go:build integration

package moving

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/location"
)

// argsAfterMove returns the settings that operators should use after a move.
func (r *rig) argsAfterMove() []string {
	return slices.DeleteFunc(slices.Clone(r.args), func(arg string) bool { return arg == "--move-from-upstream" })
}

// restartWith kills all proxies, and starts them with new settings.
func (r *rig) restartWith(args []string) {
	r.t.Helper()
	for _, proxy := range r.proxies {
		kit.Must(r.t, proxy.Kill())
	}
	r.args = args
	for i := range r.proxies {
		r.restart(i)
	}
}

// runCommand runs the program with the settings of the proxies, and returns its output.
func (r *rig) runCommand(command string, args ...string) string {
	r.t.Helper()
	fullArgs := []string{command}
	for _, master := range r.masters {
		fullArgs = append(fullArgs, "--master", master.URL())
	}
	output, err := kit.ProxyCommand(r.t, append(append(fullArgs, r.settings()...), args...)...).CombinedOutput()
	return strings.TrimSpace(fmt.Sprintf("%s\n%v", output, err))
}

// settings returns the proxies' settings that other commands of the program accept, too.
func (r *rig) settings() []string {
	return slices.DeleteFunc(slices.Clone(r.args), func(arg string) bool { return strings.HasPrefix(arg, "--fresh-start") })
}

// moveBack moves the locks to the masters and back, takes a lock before and after that, and
// restarts the proxies without the setting move-from-upstream.
func (r *rig) moveBack() {
	r.t.Helper()
	kit.Want(r.t, kit.Connect(r.t, r.proxies[0]), "OK", "SET", "lock:a", "me", "NX", "PX", "600000")
	r.mustMove(0)
	r.restartWith(r.argsAfterMove())
	r.wantVoting()
	r.mustMove(0, "--even-if-others", backFlag)
	kit.Want(r.t, kit.Connect(r.t, r.proxies[1]), "OK", "SET", "lock:b", "me", "NX", "PX", "600000")
	r.wantRecord("[upstream]") // the record follows a decision within seconds
}

// wantLocksHeld checks that both locks at the upstream are held.
func (r *rig) wantLocksHeld() {
	r.t.Helper()
	for _, proxy := range r.proxies {
		client := kit.Connect(r.t, proxy)
		kit.Want(r.t, client, nil, "SET", "lock:a", "you", "NX", "PX", "60000")
		kit.Want(r.t, client, nil, "SET", "lock:b", "you", "NX", "PX", "60000")
		kit.Want(r.t, client, "me", "GET", "lock:b")
	}
}

// flushMasters deletes all data of all masters.
func (r *rig) flushMasters() {
	r.t.Helper()
	for _, master := range r.masters {
		kit.Must(r.t, kit.SendToMaster(master, "FLUSHALL"))
	}
}

// TestLockStorageLossOnMasters lets all masters lose their data after the locks were moved back to
// the upstream. An operator confirms that no lock of the masters is held, or that the masters are
// new. The locks at the upstream stay held, whatever the settings are.
func TestLockStorageLossOnMasters(t *testing.T) {
	for name, restart := range map[string]func(r *rig){
		"init": func(r *rig) {
			r.flushMasters()
			wantOutput(r.t, r.runCommand("init", "--longest-ttl", "0s"), "5 of 5 masters vote")
			r.restartWith(append(r.argsAfterMove(), "--fresh-start=false"))
		},
		"fresh start": func(r *rig) {
			r.flushMasters()
			r.restartWith(append(r.argsAfterMove(), "--fresh-start"))
		},
		"restarted without data": func(r *rig) {
			for _, master := range r.masters {
				kit.Must(r.t, master.Restart())
			}
			wantOutput(r.t, r.runCommand("init", "--longest-ttl", "0s"), "5 of 5 masters vote")
			r.restartWith(append(r.argsAfterMove(), "--fresh-start=false"))
		},
		"new masters": func(r *rig) {
			r.flushMasters()
			r.masters = kit.StartMasters(r.t)
			wantOutput(r.t, r.runCommand("init", "--longest-ttl", "0s"), "5 of 5 masters vote")
			r.restartWith(append(r.argsAfterMove(), "--fresh-start=false"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "restarted without data" {
				redistest.SkipShort(t)
			}
			t.Parallel()
			r := startRig(t)
			r.moveBack()
			for _, proxy := range r.proxies {
				kit.Must(t, proxy.Kill())
			}
			restart(r)
			r.wantVoting()
			r.wantLocksHeld()
			wantOutput(t, r.mustMove(0, "--even-if-others"), "the locks are at the masters now: 2 string")
			r.wantLocksHeld()
		})
	}
}

// TestLockStorageLossDuringOperation repeats TestLockStorageLossOnMasters while the proxies run.
// The proxies know where the locks are stored.
func TestLockStorageLossDuringOperation(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	r.moveBack()
	r.flushMasters()
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s", "--force"), "5 of 5 masters vote")
	r.addProxy(append(r.argsAfterMove(), "--fresh-start=false")...)
	r.wantVoting()
	r.wantLocksHeld()
}

// TestUpstreamDownAtStart covers masters that have lost the location of the locks while the
// upstream is unavailable. Then init and the proxies decide on no location. A proxy that starts
// while the masters know the location does not need the upstream.
func TestUpstreamDownAtStart(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	r.moveBack()
	for _, proxy := range r.proxies {
		kit.Must(t, proxy.Kill())
	}
	kit.Must(t, r.upstream.Kill())
	r.flushMasters()
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s"),
		"refused: cannot tell where the locks are: the masters have no record of the location of the locks, and the upstream's record cannot be read", "connection refused")
	wantOutput(t, r.runCommand("check", "--fresh-start"), "no locks: the location of the locks is unknown", "connection refused")
	r.restartWith(append(r.argsAfterMove(), "--fresh-start"))
	for _, proxy := range r.proxies {
		for _, master := range r.masters {
			_, err := proxy.WaitLog(master.Addr()+` cause="waits until the location of the locks is known (the masters have no record of the location of the locks, and the upstream's record cannot be read`, kit.WaitLimit)
			kit.Must(t, err)
		}
	}
	kit.Must(t, r.upstream.RestartWithData())
	r.wantVoting()
	r.wantLocksHeld()
	kit.Must(t, r.upstream.Kill())
	lateProxy := r.addProxy(append(r.argsAfterMove(), "--fresh-start=false")...)
	for _, master := range r.masters {
		_, err := lateProxy.WaitLog(`msg="master votes" master=`+master.Addr(), kit.WaitLimit)
		kit.Must(t, err)
	}
}

// TestForbiddenRecord takes the right to the record from the proxies' user after the locks were moved
// back. When the masters have lost the location, neither init nor the proxies decide on one before
// the user has that right again.
func TestForbiddenRecord(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := &rig{t: t, upstream: kit.StartRedis(t, redistest.DurableArgs()...), masters: kit.StartMasters(t)}
	kit.Must(t, kit.SendToMaster(r.upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"))
	r.args = append([]string{"--lock-keys", "lock:*", "--move-from-upstream", "--upstream",
		"redis://app:secret@" + r.upstream.Addr(), "--share-upstream-login"}, kit.LongMasterTimeoutArgs()...)
	r.addProxy(r.args...)
	r.addProxy(r.args...)
	r.wantVoting()
	r.moveBack()
	for _, proxy := range r.proxies {
		kit.Must(t, proxy.Kill())
	}
	r.flushMasters()
	kit.Must(t, kit.SendToMaster(r.upstream, "ACL", "SETUSER", "app", "resetkeys", "~lock:*"))
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s"),
		"refused: cannot tell where the locks are: the masters have no record of the location of the locks, and the upstream's record cannot be read", "NOPERM")
	wantOutput(t, r.runCommand("check", "--fresh-start"), "the upstream's record cannot be read", "NOPERM")
	r.restartWith(append(r.argsAfterMove(), "--fresh-start"))
	_, err := r.proxies[0].WaitLog("the upstream's record cannot be read", kit.WaitLimit)
	kit.Must(t, err)
	kit.Must(t, kit.SendToMaster(r.upstream, "ACL", "SETUSER", "app", "~*"))
	r.wantVoting()
	r.wantLocksHeld()
}

// TestRecordContradictingMasters lets the masters start afresh through a proxy without an upstream.
// A proxy with an upstream gets no votes, and reports both locations, until the operator confirms
// one of them.
func TestRecordContradictingMasters(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	r.moveBack()
	for _, proxy := range r.proxies {
		kit.Must(t, proxy.Kill())
	}
	r.flushMasters()
	lockServer, err := harness.StartProxy(harness.ProxyOptions{Masters: redistest.URLs(r.masters),
		Args: append(kit.LongMasterTimeoutArgs(), "--lock-keys", "lock:*", "--fresh-start")})
	kit.Must(t, err)
	kit.WantGrant(t, kit.Dial(t, lockServer.Addr()), "LOCK", "other", "me", "PX", "60000")
	kit.Must(t, lockServer.Close())
	r.restartWith(append(r.argsAfterMove(), "--fresh-start=false"))
	contradiction := fmt.Sprintf("the record at the upstream %s says upstream (era 4), the masters %s", r.upstream.Addr(),
		r.masters[0].Addr())
	for _, proxy := range r.proxies {
		client := kit.Connect(t, proxy)
		for range 20 {
			if reply := kit.Do(t, client, "SET", "lock:b", "you", "NX", "PX", "60000"); reply == "OK" {
				t.Fatal("BOTH were granted lock:b")
			}
		}
		kit.Eventually(t, func() error {
			if reply := fmt.Sprint(kit.Do(t, client, "SET", "lock:b", "you", "NX", "PX",
				"60000")); !strings.Contains(reply, contradiction) {
				return fmt.Errorf("%v", reply)
			}
			return nil
		})
	}
	wantOutput(t, r.runCommand("check"), "it would not be safe to serve", contradiction)
	wantOutput(t, r.runCommand("check", "--json"), `"available": false`, `"cause": "0 of 5 masters vote, 3 needed"`, `"votes": false`)
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s"), "refused: cannot tell where the locks are: "+contradiction)
	r.flushMasters()
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s", "--force"), "5 of 5 masters vote")
	r.wantVoting()
	r.wantLocksHeld()
}

// TestSettingContradictingRecord sets move-from-upstream, which claims that the locks are at the
// upstream. They were at the masters, which have lost their data. No master votes until the setting
// is removed.
func TestSettingContradictingRecord(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	r.mustMove(0)
	kit.Eventually(t, func() error {
		reply, err := kit.QueryDatabase(r.upstream, "0", "HVALS", location.RecordKey)
		if got := kit.ReplyText(reply); err == nil && got != "[masters]" {
			err = fmt.Errorf("the record has %s", got)
		}
		return err
	})
	for _, proxy := range r.proxies {
		kit.Must(t, proxy.Kill())
	}
	r.flushMasters()
	contradiction := fmt.Sprintf("the record at the upstream %s says masters (era 2), but move-from-upstream says upstream; remove that setting", r.upstream.Addr())
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s"), "refused: cannot tell where the locks are: "+contradiction)
	wantOutput(t, r.runCommand("check", "--fresh-start"), "it would not be safe to serve", contradiction)
	r.restartWith(append(r.args, "--fresh-start"))
	_, err := r.proxies[0].WaitLog(contradiction, kit.WaitLimit)
	kit.Must(t, err)
	if reply := kit.Do(t, kit.Connect(t, r.proxies[1]), "SET", "lock:a", "me",
		"NX"); !strings.Contains(fmt.Sprint(reply), "NOQUORUM") {
		t.Errorf("it was answered %v", reply)
	}
	r.restartWith(r.argsAfterMove())
	r.wantVoting()
	kit.Want(t, kit.Connect(t, r.proxies[1]), "OK", "SET", "lock:a", "me", "NX", "PX", "60000")
	kit.Must(t, r.checkNoRemainingKeys(false))
}

// wantRecord waits until the upstream's record of the location of the locks is want.
func (r *rig) wantRecord(want string) {
	r.t.Helper()
	kit.Eventually(r.t, func() error {
		reply, err := kit.QueryDatabase(r.upstream, "0", "HVALS", location.RecordKey)
		if got := kit.ReplyText(reply); err == nil && got != want {
			err = fmt.Errorf("the record has %s, want %v", got, want)
		}
		return err
	})
}

// TestRecordPersistence checks that a proxy writes the record of the location again if the upstream
// loses it, by a flush or a failover. If the locks have never moved, there is no record.
func TestRecordPersistence(t *testing.T) {
	t.Parallel()
	r := startRig(t)
	r.wantRecord("[]")
	r.mustMove(0)
	r.wantRecord("[masters]")
	kit.Must(t, kit.SendToMaster(r.upstream, "FLUSHALL"))
	r.wantRecord("[masters]")
	r.mustMove(1, backFlag)
	r.wantRecord("[upstream]")
	kit.Must(t, r.upstream.Restart())
	r.wantRecord("[upstream]")
}

// TestImpossibleMove checks that a move fails before it is decided if a master lacks a
// database or memory. A move back fails in the same way if the upstream lacks memory.
func TestImpossibleMove(t *testing.T) {
	t.Parallel()
	r := &rig{t: t, upstream: kit.StartRedis(t)}
	for range 3 {
		r.masters = append(r.masters, kit.StartRedis(t, "--databases", "2"))
	}
	r.args = slices.Concat(kit.LockKeyArgs(r.upstream), kit.LongMasterTimeoutArgs(), []string{"--move-from-upstream"})
	r.addProxy(r.args...)
	r.wantVoting()
	kit.Must(t, kit.SendToDatabase(r.upstream, "3", "SET", "lock:a", "me"))
	r.wantRefused(0, "the locks stay at the upstream: lock key 'lock:a' (database 3) at the masters: ", "--even-if-others")
	kit.Must(t, kit.SendToDatabase(r.upstream, "3", "DEL", "lock:a"))
	kit.Must(t, kit.SendToMaster(r.upstream, "SET", "lock:a", strings.Repeat("x", 500_000)))
	limitMemory := func(server *redistest.Server) {
		info, err := kit.QueryDatabase(server, "0", "INFO", "memory")
		kit.Must(t, err)
		used, err := strconv.Atoi(redisinfo.Parse(info.(string))["used_memory"])
		kit.Must(t, err)
		kit.Must(t, kit.SendToMaster(server, "CONFIG", "SET", "maxmemory", strconv.Itoa(used+400_000)))
	}
	limitMemory(r.masters[0])
	r.wantRefused(0, "the locks stay at the upstream: no room for 1 lock key of about 500262 bytes: master "+r.masters[0].Addr()+" has room for only ", "--even-if-others")
	kit.Must(t, kit.SendToMaster(r.masters[0], "CONFIG", "SET", "maxmemory", "0"))
	r.mustMove(0, "--even-if-others")
	limitMemory(r.upstream)
	r.wantRefused(0, "the locks stay at the masters: no room for 1 lock key of about 500262 bytes: the upstream has room for ", "--even-if-others", backFlag)
	if log := r.proxies[0].Log(); strings.Count(log, `msg="the locks are being moved"`) != 1 {
		t.Errorf("it was begun:\n%s", log)
	}
}

// TestTwoMoversAtOnce lets two operators move the locks at the same time, at two proxies. One
// operator moves the locks, and the other operator gets the reply that there is nothing to move.
func TestTwoMoversAtOnce(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	kit.Want(t, kit.Connect(t, r.proxies[0]), "OK", "SET", "lock:a", "me", "NX", "PX", kit.Millis(longLockTTL))
	for i := range 2 * int(kit.NumberFrom(t, movesEnv, 3)) {
		flags := [][]string{{}, {backFlag}}[i%2]
		outputs := make(chan string, 2)
		for proxy := range r.proxies {
			go func() {
				startedAt := time.Now()
				output, err := r.move(proxy, flags...)
				for err != nil && strings.Contains(err.Error(), "NOQUORUM nothing was changed") && // on a busy machine
					time.Since(startedAt) < kit.WaitLimit {
					output, err = r.move(proxy, flags...)
				}
				outputs <- fmt.Sprint(output, err)
			}()
		}
		combined := <-outputs + <-outputs
		if !strings.Contains(combined, "now: 1 string") || !strings.Contains(combined, "nothing to move") {
			t.Errorf("round %d: %s", i, combined)
		}
		kit.Want(t, kit.Connect(t, r.proxies[i/2%2]), "me", "GET", "lock:a")
	}
}

// TestUndeterminedKeyBeforeMove makes a key undetermined: three masters had it, and one of them has
// lost its data. A move to the upstream is refused before any command is paused, and names the key.
func TestUndeterminedKeyBeforeMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	r.mustMove(0)
	kit.Want(t, kit.Connect(t, r.proxies[0]), "OK", "SET", "lock:u", "me", "NX")
	kit.EachMaster(t, r.masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "lock:u", "me") })
	for _, proxy := range r.proxies {
		kit.Must(t, proxy.Kill())
	}
	kit.Must(t, kit.SendToMaster(r.masters[0], "DEL", "lock:u"))
	kit.Must(t, kit.SendToMaster(r.masters[1], "DEL", "lock:u"))
	kit.Must(t, r.masters[2].Restart())
	r.restartWith(r.args)
	r.wantVoting()
	if reply := kit.ReplyText(kit.Do(t, kit.Connect(t, r.proxies[0]), "GET", "lock:u")); !strings.Contains(reply, "undetermined") {
		t.Fatalf("GET lock:u: %s", reply)
	}
	r.wantRefused(1, "lock key 'lock:u' (database 0) at the masters: 5 of 5 masters answered, and the state of the key is undetermined",
		backFlag)
	for _, proxy := range r.proxies {
		if strings.Contains(proxy.Log(), "the locks are being moved") {
			t.Error("the move was begun")
		}
	}
	kit.Want(t, kit.Connect(t, r.proxies[0]), int64(1), "FORCEUNLOCK", "lock:u")
	r.mustMove(1, backFlag)
}

// TestOldQuarantineRecord brings back a master with a quarantine record from before the locks were
// moved back to the upstream. The other masters have lost their data. The upstream's record of the
// location is later, so it decides.
func TestOldQuarantineRecord(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	r.mustMove(0)
	r.restartWith(r.argsAfterMove())
	r.wantVoting()
	away := r.masters[0]
	kit.Must(t, kit.SendToMaster(away, "FLUSHALL"))
	kit.Eventually(t, func() error { // for about a second, until it has caught up
		text, err := kit.QueryDatabase(away, "0", "GET", "redlock-proxy:quarantine")
		if err == nil && text == nil {
			err = errors.New("there is no quarantine record")
		}
		return err
	})
	kit.Must(t, kit.SendToMaster(away, "SAVE"))
	kit.Must(t, away.Kill())
	kit.Eventually(t, func() error { // the proxies have noticed that it is down
		_, err := r.move(0, "--even-if-others", backFlag)
		return err
	})
	kit.Want(t, kit.Connect(t, r.proxies[1]), "OK", "SET", "lock:b", "me", "NX", "PX", "600000")
	r.wantRecord("[upstream]")
	for _, proxy := range r.proxies {
		kit.Must(t, proxy.Kill())
	}
	for _, master := range r.masters[1:] {
		kit.Must(t, kit.SendToMaster(master, "FLUSHALL"))
	}
	kit.Must(t, away.RestartWithData())
	if text, err := kit.QueryDatabase(away, "0", "GET", "redlock-proxy:quarantine"); err != nil || text == nil {
		t.Fatalf("the record was not saved: %v, %v", text, err)
	}
	wantOutput(t, r.runCommand("init", "--longest-ttl", "0s"), "5 of 5 masters vote")
	r.restartWith(r.args)
	r.wantVoting()
	client := kit.Connect(t, r.proxies[1])
	kit.Want(t, client, nil, "SET", "lock:b", "you", "NX", "PX", "60000")
	kit.Want(t, client, "me", "GET", "lock:b")
}

// restartMasters restarts all masters at once with their data, so that each one gets a quarantine
// record instead of its marker. It ends all proxies when the records state how long to wait, and
// kills one master.
func (r *rig) restartMasters() {
	r.t.Helper()
	for _, master := range r.masters {
		kit.Must(r.t, kit.SendToMaster(master, "SAVE"))
		kit.Must(r.t, master.Kill())
	}
	for _, master := range r.masters {
		kit.Must(r.t, master.RestartWithData())
	}
	kit.WantQuarantine(r.t, r.masters)
	for _, proxy := range r.proxies {
		kit.Must(r.t, proxy.Kill())
	}
	kit.Must(r.t, r.masters[0].Kill())
}

// TestProxiesStartDuringQuarantine ends all proxies while all masters are in quarantine, without a
// marker. The proxies that start then still know where the locks are, with the settings that are
// right after a move.
func TestProxiesStartDuringQuarantine(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	set := []string{"SET", "lock:a", "me", "NX", "PX", "20000"} // the masters wait as long
	t.Run("locks at the masters", func(t *testing.T) {
		t.Parallel()
		r := startRig(t)
		r.mustMove(0)
		kit.Want(t, kit.Connect(t, r.proxies[0]), "OK", set...)
		r.restartMasters()
		r.restartWith(r.argsAfterMove())
		(&kit.Fleet{Masters: r.masters, Proxies: r.proxies}).WantVoting(t, len(r.masters)-1)
		kit.WantGrant(t, kit.Connect(t, r.proxies[1]), "LOCK", "lock:b", "me", "PX", "1000")
	})
	t.Run("locks at the upstream", func(t *testing.T) {
		t.Parallel()
		r := &rig{t: t, upstream: kit.StartRedis(t, redistest.DurableArgs()...), masters: kit.StartMasters(t)}
		r.args = append(kit.LockKeyArgs(r.upstream), kit.LongMasterTimeoutArgs()...)
		r.addProxy(r.args...)
		r.addProxy(r.args...)
		r.wantVoting()
		kit.Want(t, kit.Connect(t, r.proxies[0]), "OK", set...)
		r.mustMove(0, "--even-if-others", backFlag)
		kit.Want(t, kit.Connect(t, r.proxies[1]), "OK", "SET", "lock:b", "me", "NX", "PX", "600000")
		r.restartMasters()
		lockServer := kit.StartProxy(t, redistest.URLs(r.masters), append(kit.LongMasterTimeoutArgs(), "--lock-keys", "lock:*")...)
		(&kit.Fleet{Masters: r.masters, Proxies: []*harness.Proxy{lockServer}}).WantVoting(t, len(r.masters)-1)
		if reply := kit.Do(t, kit.Connect(t, lockServer), "SET", "lock:b", "you", "NX", "PX", "1000"); reply == "OK" {
			t.Fatal("BOTH were granted lock:b")
		}
		r.restartWith(r.argsAfterMove())
		(&kit.Fleet{Masters: r.masters, Proxies: r.proxies}).WantVoting(t, len(r.masters)-1)
		client := kit.Connect(t, r.proxies[1])
		kit.Want(t, client, nil, "SET", "lock:b", "you", "NX", "PX", "60000")
		kit.Want(t, client, "me", "GET", "lock:b")
	})
}
