// Package quorum keeps locks on N independent Redis masters by majority, as the Redlock algorithm
// describes (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/). Of this module
// it imports only its own packages and small packages of internal.
//
//	cluster, err := quorum.NewCluster(quorum.Options{Masters: urls})
//	locker := quorum.NewLocker(cluster)
//	go cluster.Run(ctx)
//	grant, err := locker.Lock(ctx, quorum.LockRequest{
//		Keys: []quorum.Key{{Name: "job:1"}}, Token: "me", TTL: 30 * time.Second})
//
// # Parts
//
// A [Cluster] takes, releases, extends, reads and updates lock keys. Packages without I/O make the
// decisions. Package vote computes majorities and leases. Package cell defines what one master
// stores for a key, and how operations change it. Package register implements the protocol, and
// package guard decides whether a master's votes count. REGISTER.md states the guarantees of the
// register and proves them; guard/GUARD.md does so for masters that lose data. Package
// internal/model runs the protocol over all orders of messages.
//
// Package master sends operations to the masters, returns their replies, and remembers the removals
// that a disconnected master has missed. A [Locker] queues the clients that wait for a key, first
// come, first served (package queue). The masters notify the first waiter when the key may be free
// (package watch). A second set of queues serves clients that wait until another client stores a
// value.
//
// Several clients may hold a lock at the same time ([LockRequest].Slots). The proxy combines their
// requests, and changes the holders by ballot.
//
// Keys with the same hash tag share a cell (package keygroup), so that one vote covers all of them;
// see [Cluster.UpdateAll].
//
// # Changes of the masters
//
// [Cluster.ChangeMasters] adds, removes or replaces one master while locks are held
// (guard/GUARD.md). A masterSet is one set of masters with its registers. A new masterSet replaces
// it, and commands wait meanwhile. A move of the locks between the upstream and the masters also
// replaces the masterSet.
package quorum
