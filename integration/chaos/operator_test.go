//go:build integration

package chaos

import "math/rand/v2"

// operator force-unlocks keys at random, held or not. It waits for the reply for as long as the
// proxy runs: a stopped proxy executes the command later, and tries for seconds if other clients
// change the same key.
type operator struct {
	*connection
	keys   []string
	random *rand.Rand
}

func (o *operator) turn() {
	key := o.keys[o.random.IntN(len(o.keys))]
	f := o.ledger.beginForceUnlock(key)
	_, isKnown := o.do("FORCEUNLOCK", key)
	o.ledger.endForceUnlock(f, isKnown)
	if !isKnown {
		o.disconnect() // this proxy may see fewer masters than the others
	}
}

func (o *operator) rest() { sleepUpTo(o.random, forcePause) }
