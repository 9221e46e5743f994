// Package place defines where the locks of a running system are, and by which steps they move from
// its one Redis, the upstream, to the masters, and back. It does no I/O. Rule 1 is kept by package
// proxy (location.go at each connection, holdback.go for what a proxy reports), rules 2 to 6 by
// package commands/move, rules 7 and 8 and the order of the places by package quorum (MoveOn,
// keepRecord) and the eras of quorum/guard.
//
// At any time one [Place] decides who holds a lock, or nobody does for a moment. Which place that
// is is decided among the masters, as which masters follow which (package reconfig): each place is
// an era of its own, of the same masters, and what is of another era does not count.
//
//	Upstream → ToMasters → Masters → ToUpstream → Upstream
//
// While the locks are moved they are still where they were, and nobody changes them there. They are
// copied, and only when it is decided that they have moved are they removed from where they were.
// So a move that is given up, at whatever point, has changed nothing.
//
// # The rules
//
//  1. A proxy sends a command on a lock key over a connection to the upstream only if a majority of
//     the masters reported, after the upstream had answered on that very connection, that the locks
//     are there. Once it learns of another era it sends none ("holds back"), and reports that in
//     its announcement, with the era, as soon as all that it had sent is answered.
//  2. Who moves the locks first ends all connections at the upstream but its own and those of
//     proxies that said, in this very era, that they hold back: also those of others who move, and
//     its own of before. A proxy that was stopped, or cut off, so has no connection over which what
//     it sent could still arrive; and to one that it makes later rule 1 applies. There is no clock
//     in this.
//  3. Before it writes to the masters, what they promised in the eras before must be too old to be
//     heeded (vote.RoundLimit, by the masters' own clocks): a write of one who moved them before
//     and stopped comes too late then, or not at all.
//  4. Then it reads what is at the one place, and has exactly that be at the other one: what is
//     there besides is removed.
//  5. When all of it is written, it is decided that they have moved. Then, over the connection of
//     rule 2, they are removed where they were.
//  6. A move begins where the locks are at rest, and an era in which they move has one mover: the
//     first that the upstream's record ([RecordKey]) names for it. Several may have had it decided.
//     Nobody goes on with the move of another.
//  7. A moving place is a lease: the proxy that moves the locks renews it wherever proxies announce
//     themselves. A proxy that has not seen it renewed for [Lease] has it decided that the locks
//     stay. Anybody may do that at any time, so no clock has to be right for it.
//  8. Masters that have all forgotten where the locks are have it from the record ([Said.Settle]).
//     It is written once its era is decided: of a moving place by rule 6 before anything is copied,
//     of one at rest by any proxy.
//
// explore_test.go tries all orders of messages for two proxies and two who move, each of which may
// stop at any point and go on later, with an upstream that restarts with its data, with older data,
// or with none, and with masters that forget all, and finds each rule needed. Its first version
// found two more rules of ours: that a proxy asks the masters in each era anew (not needed: rule 2
// ends what could be sent by one who did not), and that removing comes before deciding (wrong: a
// move that is given up then has lost what was removed).
//
// # Premises
//
// The upstream is one server while the locks are moved. Where it fails over meanwhile, locks are
// lost as they ever were; a server that was replaced, and is frozen with a command in its socket,
// is out of reach for rule 2. And who locks at the upstream without a proxy is not held back: such
// clients have to be gone before.
package place
