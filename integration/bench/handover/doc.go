// Package handover measures how a lock passes between clients that wait for it, in several proxies
// and beside redsync, and what waiting costs the masters:
//
//	go run ./integration/bench handover
//	go run ./integration/bench handover -clients 64 -proxies 2 -rounds 5 -seconds 5
//
// All clients want one key, all the time: lock, unlock, lock again. Those of the proxies (LOCK …
// BLOCK) are spread evenly over these, those of redsync (its defaults, without giving up) over as
// many sets of connections to the same masters. The contenders run one after the other in each
// round, and each round begins with another one.
//
// A hand-over is a grant to another client than the one before. It takes from when the lock was
// given back, or asked for if that was later, to the grant; all such times, also of grants to the
// same client, are the part of the time in which the lock is free. Waits are from the request to
// its grant. The luckiest client is the one with the shortest mean wait, the unluckiest the one
// with the longest; the waits themselves are told by percentiles.
//
// Idle is what the masters do for those who wait while nothing changes: one client holds the lock
// for the whole window and the others wait. Commands per second are those of all masters together
// (INFO stats), less those of a window before all rounds, in which proxies look after the masters
// as well. What is left of the proxies' is the sign of life that a silent watch is asked for each
// second: one for each proxy and master.
package handover
