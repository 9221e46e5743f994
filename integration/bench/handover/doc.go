// Package handover measures the hand-over of a lock between waiting clients of several proxies,
// compared with redsync, and the number of commands that the waiters cost the masters:
//
//	go run ./integration/bench handover
//	go run ./integration/bench handover -clients 64 -proxies 2 -rounds 5 -seconds 5
//
// All clients lock and unlock one key repeatedly. The clients of the proxies (LOCK … BLOCK) are
// spread evenly over the proxies, unless -uneven is set. For redsync (with its defaults, but
// unlimited tries), a set of connections to the same masters replaces each proxy. In each round,
// the contenders run one after the other, and each round begins with a different contender.
//
// A hand-over is a grant to a different client than the previous grant. Its duration counts from
// the release of the lock, or from the request if that was later, to the grant. The durations of
// all grants, including those to the same client, add up to the time in which the lock was free
// although its next holder had requested it. A wait lasts from a request to its grant. The luckiest
// client has the shortest mean wait, the unluckiest the longest; percentiles describe single waits.
//
// Idle is the number of commands per second at all masters (INFO stats) while nothing changes: one
// client holds the lock for the whole window, and the other clients wait. The benchmark subtracts
// the commands of a window before the first round, because proxies always check the masters. For
// the proxies, the remaining commands are the pings of silent watches: one per second for each
// proxy and master.
package handover
