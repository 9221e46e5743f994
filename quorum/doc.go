// Package quorum keeps locks on N independent Redis masters by majority, as the
// Redlock algorithm describes (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
// It imports nothing else of this module: a Go program can use it by itself.
//
//	cluster, err := quorum.NewCluster(quorum.Options{Masters: urls})
//	locker := quorum.NewLocker(cluster)
//	go cluster.Run(ctx)
//	grant, err := locker.Lock(ctx, quorum.LockRequest{
//		Key: quorum.Key{Name: "job:1"}, Token: "me", TTL: 30 * time.Second})
//
// # The parts
//
// Decisions are pure and stand apart from all I/O and clocks: [Tally] counts
// votes and says won, lost, no quorum or pending, as early as the answer can no
// longer change; [Validity] is the arithmetic of a lease.
//
// A lock key is a register that holds a token. A [Cluster] reads it
// ([Cluster.Read]) and changes it under a condition on all masters at once:
// [Cluster.Commit] of an [Acquire], [Release] or [Extend], and [Cluster.Apply] of
// any [Edit]s, also of several keys, which tells what stands there where it fails,
// so that a caller who guessed need not read first. It answers with the majority;
// slower masters, and the undoing of what a failed commit did apply, go on behind
// the answer.
//
// Two majorities share a master, and a master makes a change only if what it holds
// meets the condition. So of two changes that expect the same value at most one is
// granted. What a majority holds is the register's value; what fewer hold is a try
// that goes on, or a leftover of one that failed, and is nobody's.
//
// A [Locker] adds what a lock needs beside its register: the queue of those who
// wait for a key, first come, first served.
//
// # Masters
//
// Each master has lanes: a queue and one pipelined batch in flight, while the
// next one collects. A key always takes the same lane, so the operations of a
// key reach a master in the order in which they were asked, and an undo can
// never overtake the SET that it undoes. On a short network there is one lane,
// on a longer one (round trip of 0.3 ms and more) four; but only one where edits of
// several keys are made ([Options.SeveralKeys]), which must not overtake the
// operations of any of these.
//
// A master that refuses, hangs or answers too late is down: what is queued for
// it fails at once, nothing waits for it any more, and a prober alone dials it,
// with a growing, jittered pause. Before it votes again it gets the cleanups
// that it owes.
//
// # A master that forgot does not vote
//
// A master that restarted without its data, was flushed or re-synced, evicted keys, or
// set its clock may have forgotten a lock that it agreed to. Each batch to a master ends
// with a look at a marker, which goes with its data, and at its clock; without them its
// votes do not count, and it is in quarantine until it proves that it forgot nothing, has
// caught up from the others, or whatever it forgot is over. GUARD.md has the invariant, its
// proof, the numbers, and what this does not close. [Options.Unguarded] goes without.
//
// # What is undone, and how exactly
//
// A failed acquire is undone only where this very call created the key:
//
//   - a master that answered OK gets a compare-and-delete of the token;
//   - a master that answered nil, or an error, changed nothing and gets nothing;
//   - a master that was sent the SET and did not answer may or may not have
//     applied it. It gets a compare-and-delete that in addition asks for a
//     remaining time which only this SET can have left. So the hold of an earlier
//     LOCK with the same token stays, unless that one was made for a longer time.
//
// A lost edit is undone alike: where a master said what its keys held before, they
// hold it again, for the time that it had left, unless they were changed since, or
// the others show that what they held is over. An edit that only removes is a release.
//
// Until it is undone somebody may have seen what a lost edit gave, if enough masters
// may have made it. Outcome.Reach tells, so that a caller does not do twice what must be
// done once.
//
// A connection that times out is reset (SO_LINGER 0), so what it had not yet
// delivered is never delivered late, behind its undo.
//
// A release is never undone: what it removed is what the caller wanted gone. It
// counts as done when a majority deleted the token, and also when masters that
// did not answer may have held it but so many others surely do not hold it (any
// more) that no majority can. Such masters are told when they are back.
//
// A lock without expiry ([Endless]) is undone until that succeeded: the cleanups of
// such locks are remembered without a bound, as long as the process lives.
//
// # What is repaired
//
// An [Extend] gives the key back to masters that lost it, beside a majority that holds
// it: never as a vote, and in two steps. The master is offered the lock under a key of
// the proxies' own; every script that takes the value away takes the offer away. The
// offer is taken up when a majority is seen to hold the lock 0.7 s later (one master's
// timeout, and a round's limit): by then each release that the master had been asked for
// before the offer is over. Giving it back at once would now and then revive a lock that
// is being released.
//
// # Turns
//
// Of several edits of a key, sent to all masters at once by several proxies, each may win
// some masters and none a majority. They are taken back and tried again: safe, but with
// many who replace values (GETSET) it took seconds, errors and, rarely, wrong answers. So
// a caller can ask for the turn ([Cluster.Turn]) to change a key that others want to
// change, too: a key with a short time at one master says whose turn it is. The majority
// decides all the same. Locks that are taken and released the usual way need no turn.
//
// # The legacy server
//
// While clients move from a single Redis to the proxy, some still lock at that
// server directly. With [Options.Legacy] every lock needs its agreement, too:
// whatever the masters grant, it must have made the same change, and what it holds
// counts as held. It is asked along with the masters and is none of them.
package quorum
