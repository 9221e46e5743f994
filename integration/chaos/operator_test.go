//go:build integration

package chaos

import "math/rand/v2"

// operator force-unlocks random keys, whether they are held or free. It waits up to votingTimeout
// for a reply: a stopped proxy executes the command only after it continues, and a proxy retries
// for seconds if other clients change the same key.
type operator struct {
	*connection
	keys   []string
	random *rand.Rand
}

func (o *operator) runTurn() {
	key := o.keys[o.random.IntN(len(o.keys))]
	f := o.ledger.beginForceUnlock(key)
	_, isKnown := o.do("FORCEUNLOCK", key)
	o.ledger.endForceUnlock(f, isKnown)
	if !isKnown {
		o.disconnect() // this proxy may see fewer masters than the other proxies
	}
}

func (o *operator) waitForNextTurn() { sleepUpTo(o.random, forceUnlockPause) }
