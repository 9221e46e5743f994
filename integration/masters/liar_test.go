//go:build integration

package masters

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
)

// falseClaims lists the false claims of one master about the masters.
var falseClaims = []struct {
	name    string
	falsify func(r *rig, masters []string, m *marker.Marker)
}{
	{"a seal for others", func(_ *rig, masters []string, m *marker.Marker) {
		m.Seal = reconfig.Seal{Ballot: strings.Repeat("9", 36), Change: reconfig.Change{PreviousMasterCount: len(masters),
			Names: append(masters[1:], "127.0.0.1:1")}}
	}},
	{"a seal of one master, for another", func(_ *rig, _ []string, m *marker.Marker) {
		m.Seal = reconfig.Seal{Ballot: strings.Repeat("0", 36), Change: reconfig.Change{PreviousMasterCount: 1,
			Names: []string{"127.0.0.1:1"}}}
	}},
	{"a later set of other masters", func(_ *rig, masters []string, m *marker.Marker) {
		m.Era = reconfig.Era{Number: 7, Masters: len(masters), Hash: "0123456789abcdef"}
	}},
	{"a later set of the same masters", func(_ *rig, masters []string, m *marker.Marker) {
		m.Era = reconfig.Era{Number: 7, Masters: len(masters), Hash: reconfig.Hash(masters)}
	}},
}

// storeFalseMarker stores a marker with a false claim on a master.
func (r *rig) storeFalseMarker(master int, masters []string, falsify func(r *rig, masters []string, m *marker.Marker)) {
	r.t.Helper()
	stored, err := kit.QueryDatabase(r.servers[master], "0", "GET", "redlock-proxy:marker")
	kit.Must(r.t, err)
	parsed := marker.ReadMarker(fmt.Sprint(stored))
	if !parsed.Valid {
		r.t.Fatalf("no marker: %v", stored)
	}
	m := parsed.Value
	m.Nonce += "x"
	falsify(r, masters, &m)
	kit.Must(r.t, kit.SendToMaster(r.servers[master], "SET", "redlock-proxy:marker", marker.AppendDatabase(m.String(), 0)))
}

func (r *rig) names(n int) []string {
	var names []string
	for _, link := range r.links[:n] {
		names = append(names, link.Addr())
	}
	return names
}

// wantServing waits until each proxy grants locks, and takes one.
func (r *rig) wantServing(key string) {
	r.t.Helper()
	for i, proxy := range r.proxies {
		client := kit.Connect(r.t, proxy)
		kit.Eventually(r.t, func() error {
			if reply := kit.Do(r.t, client, "LOCK", fmt.Sprint(key, i), "t", "PX", "60000"); fmt.Sprintf("%T",
				reply) != "int64" {
				return fmt.Errorf("LOCK: %v", reply)
			}
			return nil
		})
		kit.Want(r.t, client, nil, "LOCK", "k-held", "u", "PX", "1000")
	}
}

// TestFalseClaimOfChange lets one master claim that the masters were changed. That master gets
// no vote. The other masters vote, even for a proxy that starts at this time. After a flush, the
// first master votes again.
func TestFalseClaimOfChange(t *testing.T) {
	redistest.SkipShort(t)
	for _, masters := range []int{3, 5} {
		for _, claim := range falseClaims {
			t.Run(fmt.Sprintf("%s, of %d", claim.name, masters), func(t *testing.T) {
				t.Parallel()
				r := startRig(t, 2, masters, masters)
				kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k-held", "t", "PX", "600000")
				r.storeFalseMarker(0, r.names(masters), claim.falsify)
				for _, proxy := range r.proxies {
					_, err := proxy.WaitLog("a majority contradicts it", kit.WaitLimit)
					kit.Must(t, err)
				}
				r.wantServing("k-beside-")
				r.proxies = append(r.proxies, kit.StartConfigured(t, r.files[0]))
				r.wantServing("k-later-")
				time.Sleep(1500 * time.Millisecond) // the claim has no effect later, either
				r.wantServing("k-then-")
				for _, server := range r.servers[1:] {
					stored, err := kit.QueryDatabase(server, "0", "GET", "redlock-proxy:marker")
					if m := marker.ReadMarker(fmt.Sprint(stored)); err != nil || !m.Valid || m.Value.Era.Number != 0 ||
						!m.Value.Seal.IsNone() {
						t.Errorf("%s: %v", server.Addr(), stored)
					}
				}
				kit.Must(t, kit.SendToMaster(r.servers[0], "FLUSHALL"))
				r.wantVoting(firstN(masters)...)
				r.wantServing("k-again-")
			})
		}
	}
}

// copyData gives a server the data of another server, without a restart.
func copyData(t *testing.T, to, from *redistest.Server) {
	t.Helper()
	host, port, err := net.SplitHostPort(from.Addr())
	kit.Must(t, err)
	kit.Must(t, kit.SendToMaster(to, "REPLICAOF", host, port))
	kit.Eventually(t, func() error { return kit.CheckInSync(to) })
	kit.Must(t, kit.SendToMaster(to, "REPLICAOF", "NO", "ONE"))
}

// TestDataOfEarlierEra sets a master back to its data from before a change of the masters, without
// a restart. Its marker is then of an earlier era, like the marker of a master that was unreachable
// during the change. But this master has voted since the change, so a lock that it granted must not
// be granted again.
func TestDataOfEarlierEra(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	earlier := kit.StartSameVersion(t, r.servers[0])
	copyData(t, earlier, r.servers[0])
	r.change(0, 1, 3)
	kit.Must(t, r.links[3].Refuse())
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k", "t", "PX", "60000")
	kit.Must(t, r.servers[1].Kill())
	kit.Must(t, r.links[3].Heal())
	copyData(t, r.servers[0], earlier)
	rival, start := kit.Connect(t, r.proxies[1]), time.Now()
	for time.Since(start) < 5*time.Second { // without this protection, the master voted after 2 s
		if reply := kit.Do(t, rival, "LOCK", "k", "u", "PX", "1000"); kit.IsGranted(reply) {
			t.Fatalf("granted again %v after the loss", time.Since(start))
		}
		time.Sleep(50 * time.Millisecond)
	}
	if info := kit.ReplyText(kit.Do(t, rival, "PROXY", "INFO")); !strings.Contains(info, "reason=replicated") {
		t.Errorf("the master that was set back: %s", info)
	}
}

// TestDataOfAnotherCluster gives a master the data of a master of another cluster, whose masters
// were changed once. The master catches up, and meanwhile all clients are granted locks.
func TestDataOfAnotherCluster(t *testing.T) {
	redistest.SkipShort(t)
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprint(masters), func(t *testing.T) {
			t.Parallel()
			otherRig := startRig(t, 1, 3, 4)
			otherRig.change(0, 1, 3)
			r := startServers(t, &rig{t: t, servers: []*redistest.Server{kit.StartSameVersion(t, otherRig.servers[0])}}, 2, masters, masters)
			kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k-held", "t", "PX", "600000")
			copyData(t, r.servers[0], otherRig.servers[0])
			r.wantServing("k-beside-")
			r.wantVoting(firstN(masters)...)
			kit.AwaitShortly(t, func() error { return kit.CheckToken(r.servers[0], "0", "k-held", "t") })
			r.wantServing("k-again-")
			if votingErr := otherRig.checkVoting(otherRig.proxies[0], []int{0, 1, 3}); votingErr != nil {
				t.Errorf("the other cluster: %v", votingErr)
			}
		})
	}
}

// TestDisksOfAnotherCluster gives two masters, one after the other, the disk of a master that
// another cluster removed. The seal on the disk is of the same era and number of masters. Each
// master catches up. The first master keeps no promise of the other cluster. Such a promise would
// support the seal on the second master.
func TestDisksOfAnotherCluster(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	startDurable := func(n int) (servers []*redistest.Server) {
		for range n {
			servers = append(servers, kit.StartRedis(t, redistest.DurableArgs()...))
		}
		return servers
	}
	otherRig := startServers(t, &rig{t: t, servers: startDurable(4)}, 1, 3, 4)
	otherRig.change(3, 1, 2)
	disk := filepath.Join(t.TempDir(), "disk")
	kit.Must(t, otherRig.servers[0].CopyDir(disk))
	r := startServers(t, &rig{t: t, servers: startDurable(3)}, 2, 3, 3)
	client := kit.Connect(t, r.proxies[0])
	kit.WantGrant(t, client, "LOCK", "k-held", "t", "PX", "600000")
	for i := range 2 {
		kit.Must(t, r.servers[i].RestoreDir(disk))
		kit.Eventually(t, func() error { return kit.CheckToken(r.servers[i], "0", "k-held", "t") })
		r.wantVoting(firstN(3)...)
		r.wantServing(fmt.Sprintf("k-after-%d-", i))
	}
	kit.Want(t, client, int64(1), "UNLOCK", "k-held", "t")
}

// TestReplacementOfFalseClaimant replaces a master that claims that the masters were changed.
func TestReplacementOfFalseClaimant(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k-held", "t", "PX", "600000")
	r.storeFalseMarker(0, r.names(3), falseClaims[0].falsify)
	_, err := r.proxies[0].WaitLog("a majority contradicts it", kit.WaitLimit)
	kit.Must(t, err)
	r.change(3, 1, 2)
	r.wantServing("k-")
	kit.EachMaster(t, []*redistest.Server{r.servers[1], r.servers[2], r.servers[3]},
		func(s *redistest.Server) error { return kit.CheckToken(s, "0", "k-held", "t") })
}

// TestChangeKnownToOneMaster lets a proxy that was stopped during a change reach only one master
// that knows of the change. With a file that names the new masters, the proxy follows.
func TestChangeKnownToOneMaster(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k-held", "t", "PX", "600000")
	kit.Must(t, r.proxies[1].Signal(stopSignal))
	r.writeAllMasters(0, 1, 3)
	r.reload(0)
	kit.Eventually(t, func() error { return r.checkVoting(r.proxies[0], []int{0, 1, 3}) })
	for _, link := range r.links[1:] {
		kit.Must(t, link.Refuse())
	}
	kit.Must(t, r.proxies[1].Signal(continueSignal))
	kit.Eventually(t, func() error {
		if reply := r.tryReload(1); strings.HasPrefix(reply, "ERR") {
			return fmt.Errorf("PROXY RELOAD: %s", reply)
		}
		return nil
	})
	for _, link := range r.links[1:] {
		kit.Must(t, link.Heal())
	}
	r.wantVoting(0, 1, 3)
	r.wantServing("k-")
}

// TestSealOfAnotherBallot covers two concurrent changes. The unsuccessful change has sealed a
// master that the successful change keeps, and that knows only the unsuccessful change. All four
// masters hold the lock that the three old masters had. No master has to treat the lock as a
// possible leftover.
func TestSealOfAnotherBallot(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	client := kit.Connect(t, r.proxies[1])
	kit.WantGrant(t, client, "LOCK", "k-held", "t", "PX", "600000")
	r.writeAllMasters(0, 1, 2, 3)
	stored, err := kit.QueryDatabase(r.servers[2], "0", "GET", script.MarkerKey)
	kit.Must(t, err)
	// Repeat until the change begins before a proxy has seen the seal, because the seal ends the
	// master's votes.
	kit.Eventually(t, func() error {
		r.storeFalseMarker(2, r.names(3), func(_ *rig, masters []string, m *marker.Marker) {
			m.Seal = reconfig.Seal{Ballot: strings.Repeat("0", 36), Change: reconfig.Change{PreviousMasterCount: len(masters),
				Names: append(masters, "127.0.0.1:1")}}
			kit.Must(t, kit.SendToMaster(r.servers[2], "HSET", script.SequenceKey, marker.AppendDatabase(m.Nonce, 0),
				fmt.Sprint(1<<40)))
		})
		reply := r.tryReload(0)
		if !strings.HasPrefix(reply, "ERR") {
			return nil
		}
		kit.Must(t, kit.SendToMaster(r.servers[2], "SET", script.MarkerKey, kit.ReplyText(stored)))
		kit.Eventually(t, func() error { return r.checkVoting(r.proxies[0], []int{0, 1, 2}) })
		return errors.New(reply)
	})
	r.wantVoting(0, 1, 2, 3)
	kit.Want(t, client, nil, "LOCK", "k-held", "u", "PX", "1000")
	kit.Want(t, client, int64(1), "UNLOCK", "k-held", "t")
}

// TestMasterWithoutSeal adds a master while one of the three former masters is not sealed. The
// unsealed master catches up with the two sealed masters. When the sealed masters have joined, the
// new master catches up, too. All four masters hold the lock that the three former masters had.
// None of the four gets a blocking copy.
func TestMasterWithoutSeal(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	client := kit.Connect(t, r.proxies[1])
	kit.WantGrant(t, client, "LOCK", "k-held", "t", "PX", "600000")
	r.writeAllMasters(0, 1, 2, 3)
	// A database that is listed, but has no marker, looks as if it was flushed. Such a master
	// promises a ballot, and accepts none.
	kit.Must(t, kit.SendToMaster(r.servers[2], "SADD", script.DatabasesKey, "5"))
	// With the delay, the new master catches up only after the other masters have joined.
	r.links[3].Delay(50 * time.Millisecond)
	r.reload(0)
	r.wantVoting(0, 1, 2, 3)
	r.links[3].Delay(0)
	kit.EachMaster(t, r.servers, func(s *redistest.Server) error { return kit.CheckToken(s, "0", "k-held", "t") })
	kit.Want(t, client, nil, "LOCK", "k-held", "u", "PX", "1000")
	kit.Want(t, client, int64(1), "UNLOCK", "k-held", "t")
}

// TestMajorityDataLossAfterChange lets two of the new masters grant a lock and then lose their
// data. The third new master and a removed master still have their data from before the change. The
// lock is not granted again: the rules of the former set end when a majority of the new set may
// have voted.
func TestMajorityDataLossAfterChange(t *testing.T) {
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	r.change(0, 1, 3)
	kit.Must(t, r.links[0].Refuse())
	client := kit.Connect(t, r.proxies[0])
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	kit.Must(t, r.links[0].Heal())
	r.wantVoting(0, 1, 3)
	for _, i := range []int{1, 3} {
		kit.Must(t, kit.SendToMaster(r.servers[i], "FLUSHALL"))
	}
	rival, start := kit.Connect(t, r.proxies[1]), time.Now()
	for time.Since(start) < 5*time.Second { // the proxies still reach the removed master
		if reply := kit.Do(t, rival, "LOCK", "k", "u", "PX", "1000"); kit.IsGranted(reply) {
			t.Fatalf("granted again %v after the loss", time.Since(start))
		}
		time.Sleep(50 * time.Millisecond)
	}
}
