// Package quorum keeps locks on N independent Redis masters by majority, as the
// Redlock algorithm describes (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
// It imports nothing else of this module: a Go program can use it by itself.
//
//	cluster, err := quorum.NewCluster(quorum.Options{Masters: urls})
//	go cluster.Run(ctx)
//	locker := quorum.NewLocker(cluster)
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
// ([Cluster.Read]) and changes it under a condition ([Cluster.Commit] of an
// [Acquire], [Release] or [Extend]) on all masters at once. It answers with the
// majority; slower masters, and the undoing of what a failed commit did apply,
// go on behind the answer.
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
// on a longer one (round trip of 0.3 ms and more) four.
//
// A master that refuses, hangs or answers too late is down: what is queued for
// it fails at once, nothing waits for it any more, and a prober alone dials it,
// with a growing, jittered pause. Before it votes again it gets the cleanups
// that it owes.
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
// A connection that times out is reset (SO_LINGER 0), so what it had not yet
// delivered is never delivered late, behind its undo.
//
// A release is never undone: what it removed is what the caller wanted gone. It
// counts as done when a majority deleted the token, and also when masters that
// did not answer may have held it but so many others surely do not hold it (any
// more) that no majority can. Such masters are told when they are back.
package quorum
