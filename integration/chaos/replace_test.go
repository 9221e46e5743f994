//go:build integration

package chaos

import (
	"fmt"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
)

// replaced is the fault that a master is replaced by an empty server. No other master has a fault
// at that time, because the masters can be changed only if all of them vote.
var replaced = fault{"replaced by an empty one", false, true, false,
	func(d *disturber, m *master) error { return d.replace(m) },
	func(d *disturber, _ *master) error { return d.awaitAll() }}

// replace writes the spare server in place of a master into the files of all proxies, and lets a
// proxy without a fault change the masters. The other proxies follow, even if they are stopped or
// restart meanwhile. The old master is emptied and becomes the spare server.
func (d *disturber) replace(old *master) error {
	masters := d.cluster.exchange(old)
	for _, proxy := range d.cluster.proxies {
		if err := proxy.configure(masters); err != nil {
			return err
		}
	}
	for end := time.Now().Add(admission); ; time.Sleep(20 * time.Millisecond) {
		err := d.reloadSome()
		if err == nil {
			return old.Restart()
		}
		if time.Now().After(end) {
			return fmt.Errorf("the masters cannot be changed: %w\n%s", err, d.cluster.told())
		}
	}
}

// awaitAll waits until all masters vote. A master that has not joined yet counts as unavailable.
func (d *disturber) awaitAll() error {
	for i := range masterCount {
		if err := d.awaitVote(i, false); err != nil {
			return err
		}
	}
	return nil
}

// exchange replaces a master by the spare server, and returns the new masters.
func (c *cluster) exchange(old *master) []*master {
	c.mu.Lock()
	next := c.spare
	for i, m := range c.places {
		if m == old {
			c.places[i], c.spare = next, old
		}
	}
	c.mu.Unlock()
	redsync := old.links[proxyCount]
	old.links, next.links = old.links[:proxyCount], append(next.links, redsync)
	redsync.Lead(next.Addr())
	redsync.Reset()
	return c.masters()
}

// reloadSome makes one of the available proxies read its file.
func (d *disturber) reloadSome() (err error) {
	for n, proxy := range d.cluster.proxies {
		if d.isDown(n) {
			continue
		}
		if _, err = ask(proxy.addr, "PROXY", "RELOAD"); err == nil {
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("no proxy is well")
	}
	return err
}

// startLying makes a master claim that the masters were changed, unless another master already
// lies: the proxies trust two masters with the same claim.
func (d *disturber) startLying(m *master) error {
	if !d.liar.CompareAndSwap(nil, m) {
		return nil
	}
	stands, err := ask(m.Addr(), "GET", script.MarkerKey)
	if err != nil {
		return err
	}
	found := marker.ReadMarker(fmt.Sprint(stands))
	if !found.Valid {
		return nil // without a marker, the fault has no effect
	}
	mark := found.Value
	var all []string
	for _, other := range d.cluster.masters() {
		all = append(all, other.name)
	}
	mark.Nonce += "x"
	next := mark.Era.Number + 1
	switch d.below(4) {
	case 0:
		mark.Seal = reconfig.Seal{Ballot: strings.Repeat("9", 36), Change: reconfig.Change{Before: masterCount,
			Names: append(all[1:], "127.0.0.1:1")}}
	case 1:
		mark.Seal = reconfig.Seal{Ballot: strings.Repeat("0", 36), Change: reconfig.Change{Before: 1,
			Names: []string{"127.0.0.1:1"}}}
	case 2:
		mark.Era = reconfig.Era{Number: next, Masters: masterCount, Hash: "0123456789abcdef"}
	default:
		mark.Era = reconfig.Era{Number: next, Masters: masterCount, Hash: reconfig.Hash(all)}
	}
	_, err = ask(m.Addr(), "SET", script.MarkerKey, marker.InDatabase(mark.String(), 0))
	return err
}
