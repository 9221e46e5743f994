// Package chaos has clients lock through three proxies while everything around them fails at
// random: masters are killed and come back with their data, with older ones, or without; they are
// stopped, cut off, slowed, flushed, and have their clocks stepped; proxies are killed and stopped.
// Some clients lock with equal values and leave in the midst of large replies, some hold keys for
// long and replace them in many ways, and an operator forces locks free. By the clients' own clock
// no two may ever hold one lock, no lock may be lost before its time, and none that was given back
// may stand again. In the end, when all is well and quiet, all masters hold the same.
//
// At each moment the masters that are disturbed are a minority. One that forgot counts as disturbed
// until it votes again.
//
// The same load on redsync, straight on the same masters under the same faults, shows that there is
// something to be seen.
package chaos
