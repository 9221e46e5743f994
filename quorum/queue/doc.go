// Package queue keeps those who wait for locks in queues, one for each key, first come, first served,
// and says when the head of a queue tries. It does no I/O: trying is its caller's, and what is known of the key on
// the masters comes from an [Alarm].
//
// Only the head of a queue asks the masters ([Queues.Await]). Within one process a lock is handed on as its release is queued: the
// take of the head leaves in the same batch to each master, behind the release. Where another process has it the head looks, once, and sleeps
// until its alarm rings or the lease is over ([Head]). Where the alarm cannot tell, the head polls.
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
// The heads of several processes are told of a change at the same time; at most one try of each process is under way. A change of a lock
// that somebody had for more than 2 ms is tried at once, one after less than that is looked at first, at most every 4 ms: a process that
// hands the lock on by itself does so in one batch, so what a look finds free has been left, and what was handed on costs a look and no try.
//
// So that all waiters are served, whatever process they wait in, a process has the lock for a turn (turn.go): those who waited when it
// began are served once, then the next process is. Whether there are others is known, not tried out. A head that finds the lock in other hands, or has to
// leave it to others, leaves a mark of its process on the masters, and removes it once it is served or gone ([Others]). With the last grant of a turn, while the lock
// is held, the masters are asked for marks: each time for 100 ms after others had it, else every 10 ms at the most. Where nobody waits
// elsewhere, or no other process is known, the lock is handed on without an end and never left idle. Where somebody does, its release leaves it to
// the next process in the ring of their IDs: with the release, or as soon as the masters have answered where that came first, the mark of that process is overwritten, and
// so the masters notify its head ([Others.Passed]), which tries at once. If there is no mark any more to overwrite the lock is nobody's, and the own head tries.
//
// Meanwhile the own head asks each millisecond if that process still has its mark. When it has not it was served, or has gone: the head looks which.
// One that has stopped, with its mark left behind, holds the lock up for 50 ms, once a second.
//
// One who locks again and again has its turns, too, although its queue is empty in between: the queue is kept for a second. Turns
// are a courtesy, and so is a mark: who cannot read them, or did not get its own there in time, is served later. One who looked in vain for a quarter of a
// second tries whenever the lock may be free, whoever's turn it is.
package queue
