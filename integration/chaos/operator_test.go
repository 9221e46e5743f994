//go:build integration

package chaos

import "math/rand/v2"

// operator is one who forces locks free at random, whoever holds them, also such as nobody holds.
// It waits for the answer for as long as the proxy lives: one that was stopped carries out what it
// was sent, and tries for seconds where others change the same key.
type operator struct {
	*connection
	keys   []string
	random *rand.Rand
}

func (o *operator) turn() {
	key := o.keys[o.random.IntN(len(o.keys))]
	f := o.ledger.forcing(key)
	_, known := o.do("FORCEUNLOCK", key)
	o.ledger.forced(f, known)
	if !known {
		o.hangUp() // and goes to another proxy: this one may see fewer masters than others do
	}
}

func (o *operator) rest() { nap(o.random, forcePause) }
