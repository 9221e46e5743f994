// Package quorum keeps locks on N independent Redis masters by majority, as the Redlock algorithm
// describes (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/). It imports
// nothing else of this module but small packages of internal.
//
//	cluster, err := quorum.NewCluster(quorum.Options{Masters: urls})
//	locker := quorum.NewLocker(cluster)
//	go cluster.Run(ctx)
//	grant, err := locker.Lock(ctx, quorum.LockRequest{
//		Key: quorum.Key{Name: "job:1"}, Token: "me", TTL: 30 * time.Second})
//
// # The parts
//
// A [Cluster] keeps lock keys: it takes them, releases, extends, reads and updates them. What is
// decided is decided in packages of their own, which do no I/O: vote has the arithmetic of
// majorities and leases, cell what one master holds under a key and does there, register the
// protocol, and guard whether a master's votes count. REGISTER.md shows what is promised and why it
// holds, guard/GUARD.md the same of masters that forget, and package model runs the protocol over
// all orders of messages.
//
// Package master carries operations to the masters and their answers back, and remembers what is
// owed to a master that is away. This package adds what a lock needs besides its register: a
// [Locker] has the queue of those who wait for a key, first come, first served (package queue),
// whom the masters notify when it may be free (package wake), and those of others who wait until
// something is put under one.
//
// Keys with a tag share a cell (package bag), so that one vote is about all of them:
// [Cluster.UpdateAll].
//
// # Other masters
//
// [Cluster.ChangeMasters] adds, removes or replaces one master while locks are held
// (guard/GUARD.md). The masters of one time, and their registers, are a generation; commands wait
// while one follows another.
package quorum
