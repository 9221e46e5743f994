// Package queue keeps the waiters for locks in queues, one for each key, first come, first served,
// and decides when the head of a queue tries. It does no I/O: the caller makes the tries, and an
// [Alarm] reports the known state of the key on the masters. A read of the key also makes a master
// report the next change of the key.
//
// For an exclusive lock only the head of the queue sends requests to the masters ([Queues.Await]).
// Within one process a lock is handed on when its release is queued: the take of the head is sent
// to each master in the same batch, behind the release. If another process holds the lock, the head
// reads it once, and sleeps until its alarm reports a change or the lease expires ([Head]). If the
// alarm has too little information, the head polls.
//
// Several clients may hold some locks together. Each grant and each release of such a lock says how
// many further clients may get it. So many waiters try together with the head, up to the first
// waiter for an exclusive lock. If the number is not limited, all of them try.
//
// A waiter for several keys enters the queues of all of them in one step, so of two waiters the
// same one is ahead in each queue that they share, and no two wait for each other. It tries when it
// is the head of all its queues. If a key refuses the try, the waiter acts as the head of that
// key's queue only, and tries again when this key may be free. In its other queues it is idle: it
// does nothing, and the waiters behind it wait. So a waiter is served after the waiters ahead of
// it, after the waiters ahead of those, and so on. It is served before all later waiters. Since an
// idle head does not know whether its key is held, a request without a wait does not count it as a
// waiter, and a waiter behind it whose time limit has passed tries once. Idle heads put no marks.
//
// Waiters for a value under a key ([ValueQueues.Await]) have separate queues, because they do not
// block other clients from the key. A waiter for several keys is in the queue of each key, and
// takes values only under the keys of which it is the head. A head makes the masters report the
// next change, then tries, and sleeps until they report.
//
// While too few masters vote, a head does not try, but sleeps until a majority votes. A wait whose
// time limit ends meanwhile, or after a try that left the holder unknown, returns
// [WaitTimedOutUndecided].
//
// # Other processes
//
// Several processes are notified of a change at the same time. In each process at most one client
// tries to take an exclusive lock at a time. If a lock was held for more than 2 ms, the heads try
// at once when it changes. After a shorter time they read it first, with pauses that grow to 4 ms.
// A process that hands the lock on internally does so in one batch. So a read finds the lock free
// only if the process has given it up, and a lock that was handed on costs a read and no try.
//
// Waiters of all processes must be served, so a process has the lock for a turn (turn.go): it
// serves each waiter that is in the queue when the turn begins, and then the next process has its
// turn. Waiter marks ([WaiterMark]; here: marks) show whether other processes wait, so no try is
// needed to find out. A head that finds the lock held by another process, or has to leave the lock
// to another process, puts a mark of its process on the masters. The process that releases the lock
// leaves it to the next process, in the ring of all process IDs, that has a mark. The releasing
// process overwrites that mark. So the masters notify the head of the next process, which tries at
// once. If there is no mark, the head of the releasing process tries. A process that knows no other
// process uses no marks.
//
// A process sends the commands for marks together with other commands. So a hand-over is three
// batches at each master: the take, the mark of the process that gave the lock back and wants it
// again, and the release. The rules are:
//
//   - With a take the process removes its own mark ([Queues.SendTake]). If the lock is granted, the
//     process no longer waits. Otherwise it puts the mark again. The take is behind the removal, so
//     a reply to the take shows that the mark is gone.
//   - With the last take of a turn the process asks whether other processes have marks: each time
//     for 100 ms after another process had the lock, otherwise at most every 10 ms. The reply comes
//     with the grant, before there can be a release. If no other process waits, the lock is handed
//     on without limit and is never idle.
//   - With the release ([Queues.RecordRelease]) the process leaves the lock to the next process, if
//     it knows that one waits, or if no client waits in its own queue. In the second case it asks
//     for marks, which delays no client. It finds marks that other processes put since the take,
//     such as the mark of a client that locks again and again. At each master it overwrites the
//     mark behind the release, so the notified process finds the lock free.
//   - With the read of the lock the process puts its mark ([WaiterMark]), over the connection that
//     reports changes, ahead of the read. So at each master either the mark precedes the release,
//     and the releasing process finds it, or the read finds the lock free. No hand-over is missed.
//
// A head that has left the lock to a process reads that process's mark, and then the lock.
// The masters report when the mark is gone. Then that process has had the lock or no longer wants
// it. So the read of the lock returns a newer state: held by another process, or free. A process
// that stopped and left its mark behind delays the lock by 50 ms, once a second.
//
// A client that locks again and again also gets its turns, although its queue is empty in between:
// the queue is kept for a second. Turns and marks decide only about the order, not about who holds
// a lock. A process that cannot read marks, or could not put its own in time, is served later. A
// mark without a waiter costs a read. A head whose reads have failed for a quarter of a second
// tries whenever the lock may be free, regardless of turns.
package queue
