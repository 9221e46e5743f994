//go:build integration

package guardschedules

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// TestSwapDB0 swaps C's databases 0 and 1. A lock was once taken in database 1, so database 1 has a
// marker of the proxies, too.
func TestSwapDB0(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 2, nil)
	client := kit.Connect(t, f.proxies[0])
	kit.Want(t, client, "OK", "SELECT", "1")
	if reply := kit.Do(t, client, "LOCK", "other", "token", "PX", "1000"); replyKind(reply) == "NOQUORUM" {
		t.Fatalf("LOCK in database 1: %v", reply)
	}
	l := f.lockOnThree(t, "k", time.Minute)
	mustSend(t, f.masters[masterC], "SWAPDB", "0", "1")
	f.wantLostOn(t, l, masterC)
	f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
}

// TestPromotedReplica gives C's address to a replica of C. The replica did not receive the lock,
// because its link to C hangs. It writes everything that it receives to disk before it replies.
func TestPromotedReplica(t *testing.T) {
	t.Parallel()
	durable := redistest.Options{ExtraArgs: redistest.DurableArgs()}
	f, replica := startMasters(t, optionsFor(masterC, durable)), redistest.New(t, durable)
	// The replica connects before the next probe, because the first replica changes the identity of
	// its master.
	link := startReplica(t, replica, f.masters[masterC])
	f.startProxy(t)
	f.startProxy(t)
	f.wantVoting(t, masterCount)
	awaitSameOwnKeys(t, replica, f.masters[masterC])
	kit.Must(t, link.Cut())
	l := f.lockOnThree(t, "k", time.Minute)
	kit.Must(t, f.masters[masterC].Kill())
	mustSend(t, replica, "REPLICAOF", "NO", "ONE")
	f.replace(masterC, replica)
	f.wantLostOn(t, l, masterC)
	f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
}

// TestDiskRestored restores C's disk to a state with the marker, but before the lock.
func TestDiskRestored(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 2, optionsFor(masterC, redistest.Options{ExtraArgs: redistest.DurableArgs()}))
	folder := filepath.Join(t.TempDir(), "C")
	kit.Must(t, f.masters[masterC].CopyDir(folder))
	l := f.lockOnThree(t, "k", time.Minute)
	kit.Must(t, f.masters[masterC].RestoreDir(folder))
	f.wantLostOn(t, l, masterC)
	f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
}

// TestDiskRestoredBeforeAdmission restarts C with all its data, and waits until C is admitted
// again. Then the lock is taken, and all proxies end. C's disk is restored to a state before that
// restart, for which the other masters knew the last sequence number.
func TestDiskRestoredBeforeAdmission(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, optionsFor(masterC, redistest.Options{ExtraArgs: redistest.DurableArgs()}))
	// By then the proxy has written the sequence number to the other masters.
	time.Sleep(4 * time.Second)
	folder := filepath.Join(t.TempDir(), "C")
	kit.Must(t, f.masters[masterC].CopyDir(folder))
	oldMarker := mustSend(t, f.masters[masterC], "GET", "redlock-proxy:marker")
	kit.Must(t, f.masters[masterC].Kill())
	kit.Must(t, f.masters[masterC].RestartWithData())
	kit.Eventually(t, func() error {
		if marker := mustSend(t, f.masters[masterC], "GET", "redlock-proxy:marker"); marker == nil || marker == oldMarker {
			return fmt.Errorf("C was not admitted anew: its marker is %v", marker)
		}
		return nil
	})
	f.wantVoting(t, masterCount)
	l := f.lockOnThree(t, "k", time.Minute)
	time.Sleep(4 * time.Second) // the proxies probe the masters in this time
	kit.Must(t, f.proxies[0].Kill())
	f.cutOff(t, masterA, masterB)
	kit.Must(t, f.masters[masterC].RestoreDir(folder))
	l.wantRefused(t, kit.Connect(t, f.startProxy(t)), 6*time.Second)
}

// TestDiskRestoredAndRestarted restores C's disk to a state before the lock, and kills all proxies.
// C restarts once more before any proxy has checked that C has all its data. A proxy checks C's
// later claim, too.
func TestDiskRestoredAndRestarted(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, optionsFor(masterC, redistest.Options{ExtraArgs: redistest.DurableArgs()}))
	folder := filepath.Join(t.TempDir(), "C")
	kit.Must(t, f.masters[masterC].CopyDir(folder))
	l := f.lockOnThree(t, "k", time.Minute)
	// By then the proxy has written the sequence number to the other masters.
	time.Sleep(4 * time.Second)
	kit.Must(t, f.proxies[0].Kill())
	f.cutOff(t, masterA, masterB)
	kit.Must(t, f.masters[masterC].RestoreDir(folder))
	args := append([]string{"serve", "--listen", "127.0.0.1:0"}, kit.LongMasterTimeoutArgs()...)
	for _, url := range kit.LinkURLs(f.links) {
		args = append(args, "--master", url)
	}
	second := kit.ProxyCommand(t, args...)
	kit.Must(t, second.Start())
	t.Cleanup(func() { _ = second.Process.Kill() })
	kit.Eventually(t, func() error { // C has the claim for some seconds, before the proxy serves clients
		if record := fmt.Sprint(mustSend(t, f.masters[masterC], "GET",
			"redlock-proxy:quarantine")); !strings.Contains(record, " restarted ") ||
			strings.Contains(record, " - restarted ") {
			return fmt.Errorf("C has no claim: %s", record)
		}
		return nil
	})
	kit.Must(t, second.Process.Kill())
	_ = second.Wait() // was killed
	kit.Must(t, f.masters[masterC].Kill())
	kit.Must(t, f.masters[masterC].RestartWithData())
	l.wantRefused(t, kit.Connect(t, f.startProxy(t)), 6*time.Second)
}

// TestAppendOnlyOff turns C's append-only file off. After a crash, C uses the old file.
func TestAppendOnlyOff(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 2, optionsFor(masterC, redistest.Options{ExtraArgs: redistest.DurableArgs()}))
	mustSend(t, f.masters[masterC], "CONFIG", "SET", "appendonly", "no")
	l := f.lockOnThree(t, "k", time.Minute)
	kit.Must(t, f.masters[masterC].RestartWithData())
	f.wantLostOn(t, l, masterC)
	f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
}

// TestOlderDataReloaded makes C load an older RDB while C runs. So C is the same server with the
// same marker.
func TestOlderDataReloaded(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 2, optionsFor(masterC, redistest.Options{ExtraArgs: []string{"--enable-debug-command", "yes"}}))
	mustSend(t, f.masters[masterC], "SAVE")
	l := f.lockOnThree(t, "k", time.Minute)
	// By then every proxy has probed C. Until then the guard has the gap that GUARD.md describes.
	time.Sleep(4 * time.Second)
	mustSend(t, f.masters[masterC], "DEBUG", "RELOAD", "NOSAVE")
	f.wantLostOn(t, l, masterC)
	f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
}

// replace lets another server take the address of a master.
func (f *fleet) replace(master int, server *redistest.Server) {
	f.masters[master] = server
	f.links[master].Retarget(server.Addr())
	f.links[master].Reset()
}

// startReplica makes a server a replica, waits until it has all data, and returns its link to its
// master.
func startReplica(t *testing.T, replica, master *redistest.Server) *faultlink.Link {
	t.Helper()
	link, err := faultlink.New(master.Addr())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, link.Close()) })
	host, port, _ := strings.Cut(link.Addr(), ":")
	mustSend(t, replica, "REPLICAOF", host, port)
	kit.Eventually(t, func() error {
		if info := fmt.Sprint(mustSend(t, replica, "INFO", "replication")); !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("%s is not in sync: %s", replica.Addr(), info)
		}
		return nil
	})
	return link
}

// awaitSameOwnKeys waits until a replica has all the proxies' own keys of its master.
func awaitSameOwnKeys(t *testing.T, replica, master *redistest.Server) {
	t.Helper()
	kit.Eventually(t, func() error {
		if replicaKeys, masterKeys := ownKeys(t, replica), ownKeys(t, master); replicaKeys != masterKeys {
			return fmt.Errorf("the replica has %s, its master %s", replicaKeys, masterKeys)
		}
		return nil
	})
}

// ownKeys returns the proxies' own keys on a server, with their values.
func ownKeys(t *testing.T, server *redistest.Server) string {
	t.Helper()
	return fmt.Sprint(mustSend(t, server, "EVAL", `local all = {}
for _, key in ipairs(redis.call('keys', 'redlock-proxy:*')) do
  local value = redis.pcall('get', key)
  all[#all + 1] = key .. '=' .. (type(value) == 'string' and value or '?')
end
table.sort(all)
return all`, "0"))
}
