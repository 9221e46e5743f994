// Package location defines the locations of locks, and the steps of a move. Locks move from the
// upstream, the single Redis of a running system, to the masters, and back. The package does no
// I/O. Package proxy implements rule 1: location.go for each connection, pausereports.go for the
// announcements. Package commands/move implements rules 2 to 6. Package quorum (DecideLocation,
// keepRecord) implements rules 7 and 8 and the order of the places, with the eras of quorum/guard.
//
// At any time one [Place] decides which client holds a lock, or for a moment none does. The masters
// decide on the place in the same way as on their own changes (package reconfig). Each place is a
// separate era with the same masters, and messages of another era do not count.
//
//	Upstream → MovingToMasters → Masters → MovingToUpstream → Upstream
//
// During a move the locks are still at the source, and no client changes them there. They are
// copied, and removed from the source only after the masters have decided that they have moved. So
// a move that is aborted, at any point, has changed nothing.
//
// # The rules
//
//  1. A proxy sends a command on a lock key over a connection to the upstream only if two events
//     happened in this order. The upstream answered on this very connection. Then a majority of the
//     masters reported that the locks are at the upstream. Once the proxy learns of another era it
//     pauses: it sends no such command. It announces its pause, with the era, as soon as the
//     upstream has answered all such commands.
//  2. The mover first ends all connections at the upstream, except its own and the connections of
//     proxies that announced their pause in this very era. It also ends the connections of other
//     movers, and its own earlier connections. So no earlier command of a proxy that was stopped
//     or cut off can arrive over an old connection. Rule 1 covers later connections of that proxy.
//     This rule depends on no clock.
//  3. Before the mover writes to the masters, it waits until they ignore promises of earlier eras
//     (vote.RoundLimit, by the masters' own clocks). So a write of an earlier mover that stopped
//     arrives too late.
//  4. Then the mover reads the source and makes the target equal to it: it removes everything else
//     at the target.
//  5. After all writes, the masters decide that the locks have moved. Then the mover removes the
//     locks from the source, over the connection of rule 2.
//  6. A move begins only when the locks are at rest. An era in which they move has one mover: the
//     first that the upstream's record ([RecordKey]) names for it, because several may have
//     proposed the era. No mover continues the move of another mover.
//  7. A moving place is a lease, which the mover renews in its announcements to the proxies. A
//     proxy that has seen no renewal for [Lease] proposes that the locks stay. Any proxy may do so
//     at any time, so no clock has to be right.
//  8. If all masters have lost the location of the locks, the record decides ([Report.Resolve]).
//     The masters first decide on an era, then a proxy records it. If the locks move, the mover
//     records the era before it copies anything (rule 6). If they are at rest, any proxy records
//     the era.
//
// explore_test.go tries all orders of messages for two proxies and two movers, each of which may
// stop at any point and continue later. The upstream restarts with its data, with older data, or
// with none, and the masters lose their data. The test shows that each rule is needed. Its first
// version refuted two more rules. By the first, a proxy asked the masters again in each era, which
// rule 2 makes unnecessary. By the second, the mover removed the locks before the decision. But if
// the move is then aborted, the removed locks are lost.
//
// # Premises
//
// The upstream is one server during the move. Before the mover proposes that the locks have moved,
// it checks that the upstream is still this server. It checks again before it removes the locks
// from the source. The upstream must have the same run_id, must be a master, must have lost no
// replica during the move, and must be the server that the Sentinels report. Otherwise the mover
// aborts, or keeps the locks at the source. If the upstream fails over just after that, locks are
// lost, as without a proxy. Rule 2 cannot reach a server that was replaced and is frozen with a
// command in its socket. Clients that lock at the upstream without a proxy do not pause, so the
// operator must stop them first.
package location
