//go:build integration

package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
)

// replacement is the fault in which an empty server replaces a master. No other master has a fault
// at that time, because the masters can be changed only if all of them vote.
var replacement = fault{"replaced by an empty one", false, true, false, false,
	func(d *disturber, m *master) error { return d.replace(m) },
	func(d *disturber, _ *master) error { return d.awaitAllVotes() }}

// replace makes a proxy without a fault replace a master by the spare server. The other proxies
// follow, even if they are stopped or restart meanwhile. The old master restarts without data, and
// becomes the spare server.
func (d *disturber) replace(old *master) error {
	former := d.cluster.masters()
	masters := d.cluster.swapSpare(old)
	for end := time.Now().Add(votingTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := d.change(former, masters)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("the masters cannot be changed: %w\n%s", err, d.cluster.describe())
		}
	}
	for _, proxy := range d.cluster.proxies {
		if err := proxy.configure(masters); err != nil {
			return err
		}
	}
	return old.Restart()
}

// change lets an available proxy change the masters: it writes the new configuration file, and
// sends PROXY RELOAD. If the masters do not decide on the change, it restores the former file.
// Otherwise a restarted proxy would use the new file without making the change, and would serve no
// locks.
func (d *disturber) change(oldMasters, masters []*master) error {
	err := errors.New("no proxy is available")
	for n, proxy := range d.cluster.proxies {
		if d.isDown(n) {
			continue
		}
		if err = proxy.configure(masters); err != nil {
			return err
		}
		reply, reloadErr := do(proxy.addr, "PROXY", "RELOAD")
		if isDecided(oldMasters, masters) {
			return nil
		}
		err = fmt.Errorf("PROXY RELOAD: %v, %w", reply, cmp.Or(reloadErr, errUndecided))
		d.addEvent(err.Error())
		if writeErr := proxy.configure(oldMasters); writeErr != nil {
			return writeErr
		}
	}
	return err
}

var errUndecided = errors.New("the masters have not decided on the change")

// isDecided reports whether the markers of a majority of the former masters name the new masters,
// as the current masters or as the successors.
func isDecided(oldMasters, masters []*master) bool {
	var names []string
	for _, m := range masters {
		names = append(names, m.name)
	}
	count := 0
	for _, m := range oldMasters {
		mark := m.marker()
		if mark.Era.Hash == reconfig.Hash(names) || reconfig.Hash(mark.Seal.Names) == reconfig.Hash(names) {
			count++
		}
	}
	return count >= majority
}

// awaitAllVotes waits until all masters vote, including the new master. Until the new master has
// joined, it counts as unavailable.
func (d *disturber) awaitAllVotes() error {
	for i := range masterCount {
		if err := d.awaitVote(i, fault{}); err != nil {
			return err
		}
	}
	return nil
}

// swapSpare replaces a master by the spare server, and returns the new masters.
func (c *cluster) swapSpare(old *master) []*master {
	c.mu.Lock()
	next := c.spareMaster
	for i, m := range c.currentMasters {
		if m == old {
			c.currentMasters[i], c.spareMaster = next, old
		}
	}
	c.mu.Unlock()
	redsync := old.links[proxyCount]
	old.links, next.links = old.links[:proxyCount], append(next.links, redsync)
	redsync.Retarget(next.Addr())
	redsync.Reset()
	return c.masters()
}

// storeFalseMarker makes a master claim that the masters were changed, unless another master
// already claims it. The proxies would trust two masters with the same claim.
func (d *disturber) storeFalseMarker(m *master) error {
	if !d.falseMaster.CompareAndSwap(nil, m) {
		return nil
	}
	stored, err := do(m.Addr(), "GET", script.MarkerKey)
	if err != nil {
		return err
	}
	parsed := marker.ReadMarker(fmt.Sprint(stored))
	if !parsed.Valid {
		return nil // without a marker, the fault has no effect
	}
	falseMarker := parsed.Value
	var names []string
	for _, other := range d.cluster.masters() {
		names = append(names, other.name)
	}
	falseMarker.Nonce += "x"
	next := falseMarker.Era.Number + 1
	switch d.randomInt(4) {
	case 0:
		falseMarker.Seal = reconfig.Seal{Ballot: strings.Repeat("9", 36), Change: reconfig.Change{PreviousMasterCount: masterCount,
			Names: append(names[1:], "127.0.0.1:1")}}
	case 1:
		falseMarker.Seal = reconfig.Seal{Ballot: strings.Repeat("0", 36), Change: reconfig.Change{PreviousMasterCount: 1,
			Names: []string{"127.0.0.1:1"}}}
	case 2:
		falseMarker.Era = reconfig.Era{Number: next, Masters: masterCount, Hash: "0123456789abcdef"}
	default:
		falseMarker.Era = reconfig.Era{Number: next, Masters: masterCount, Hash: reconfig.Hash(names)}
	}
	_, err = do(m.Addr(), "SET", script.MarkerKey, marker.AppendDatabase(falseMarker.String(), 0))
	return err
}
