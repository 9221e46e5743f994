// Package queue keeps those who wait for locks in queues, one for each key, first come, first
// served, and says when the head of a queue tries. It does no I/O: trying is its caller's, and what
// is known of the key on the masters comes from an [Alarm].
//
// Only the head of a queue asks the masters ([Queues.Await]). Within one process a lock is handed
// on as its release is queued: the take of the head leaves in the same batch to each master, behind
// the release. Where another process has it the head looks, once, and sleeps until its alarm rings
// or the lease is over ([Head]). Where the alarm cannot tell, the head polls.
//
// Those who wait until something is put under a key ([Lines.Await]) have queues of their own, for
// they do not keep anybody from the key. Who waits for several keys stands in the queue of each,
// and takes what comes under those of which it is the head. A head has the masters tell of the next
// change, tries then, and sleeps until they tell.
//
// While too few masters vote nothing is tried: a head sleeps until a majority does. A wait that
// ends meanwhile ends [Open], as one does of which the head's last try did not tell who holds the
// lock.
//
// # Other processes
//
// The heads of several processes are told of a change at the same time; at most one try of each
// process is under way. A change of a lock that somebody had for more than 2 ms is tried at once,
// one after less than that is looked at first, at most every 4 ms: a process that hands the lock on
// by itself does so in one batch, so what a look finds free has been left, and what was handed on
// costs a look and no try.
//
// So that all waiters are served, whatever process they wait in, a process has the lock for a turn
// (turn.go): those who waited when it began are served once, then the next process is. Whether
// there are others is known, not tried out, by marks ([Others]): a head that finds the lock in
// other hands, or has to leave it to others, has a mark of its process on the masters. Who gives
// the lock back leaves it to the next process in the ring of their IDs that has a mark: that is
// overwritten, so the masters notify its head, which tries at once. If there is no mark the lock is
// nobody's, and the own head tries. Where no other process is known, all this is left out.
//
// What is sent for it leaves with what is sent anyway, so that a hand-over is three batches at each
// master: the take, the mark of who gave the lock back and wants it again, and the release. The
// rule is that of the moment at which something is known:
//
//   - With a take the own mark goes ([Queues.Taking]): if the lock is granted this process waits no
//     more, else the mark is put anew. The take is behind it, so that whoever has an answer to the
//     take knows that the mark is gone.
//   - With the last take of a turn others are asked if they have marks: each time for 100 ms after
//     others had the lock, else every 10 ms at the most. The answer comes with the grant, before
//     there can be a release. Where nobody waits elsewhere the lock is handed on without an end and
//     never left idle.
//   - With the release ([Queues.Released]) the lock is left to the next process, if one is known to
//     wait, or if nobody waits here: then nobody is kept waiting by a question, and a mark that
//     came since the take is found, as that of one who locks again and again. The overwriting is
//     behind the release at each master, so no take can come before that.
//   - With the look at the lock the mark is put ([Mark]), over the connection that tells of
//     changes, before the look in its order. So at each master either the mark is there before the
//     release, and who releases finds it, or the look finds the lock free: no hand-over is missed
//     between the two.
//
// A head that has left the lock to a process looks at that one's mark, and then at the lock. When
// the mark has gone, which the masters tell, that process has had the lock, or wants it no more;
// what the lock showed behind that is news: held by others, or free. One that has stopped, with its
// mark left behind, holds the lock up for 50 ms, once a second.
//
// One who locks again and again has its turns, too, although its queue is empty in between: the
// queue is kept for a second. Turns are a courtesy, and so is a mark: who cannot read them, or did
// not get its own there in time, is served later; one that is there for nobody costs a look. One
// who looked in vain for a quarter of a second tries whenever the lock may be free, whoever's turn
// it is.
package queue
