// Package queue keeps those who wait for locks in queues, one for each key, first come, first served,
// and says when the head of a queue tries. It does no I/O: trying is its caller's, and what is known of the key on
// the masters comes from an [Alarm].
//
// Only the head of a queue asks the masters ([Queues.Await]). Within one process a lock is handed on as soon as its
// release is sent. Where another process has it the head looks, once, and sleeps until its alarm rings or
// the lease is over ([Head]). Where the alarm cannot tell, the head polls.
//
// Those who wait until something is put under a key ([Lines.Await]) have queues of their own, for they do not keep anybody from the
// key. Who waits for several keys stands in the queue of each, and takes what comes under those of which it is the head. A head has
// the masters tell of the next change, tries then, and sleeps until they tell.
//
// While too few masters vote nothing is tried: a head sleeps until a majority does. A wait that ends meanwhile ends [Open], as one does of which
// the head's last try did not tell who holds the lock.
//
// # Other processes
//
// The heads of several processes are told of a release at the same time, and try at the same time; at most one try of each
// process is under way. A head that was told after a quiet while tries at once. Where the lock changes hands all the time, or others are known to wait, it looks first,
// and tries only what is free: else it would get in the way of a process that hands the lock on by itself.
//
// So that all waiters are served, whatever process they wait in, a process has the lock for a turn (turn.go). As long as
// nobody else takes the lock when it could, a turn is 300 ms, and the gap after it 40 ms, longer than the pause of one who
// polls. There is no gap where no other proxy is known and nobody else was seen to have the lock. Once somebody takes it in a gap,
// a turn is for those who waited when it began: each is served once, then the others are, so waits are
// the same in a process with few waiters and one with many. The gap ends when another has taken the lock.
// A client that locks again and again has its turns, too, although its queue is empty in between: the queue is kept for a second. Turns
// are a courtesy. One who looked in vain for a quarter of a second tries whenever the lock may be free, whoever's turn it is.
package queue
