// Package messages carries the messages of clients between lock servers, which have no upstream
// that could, through the masters.
//
// # What is promised
//
// A message that a majority of the masters has taken (its client got a number) is delivered once to
// each subscriber that was confirmed before it was published, at whatever proxy, or that
// subscriber's connection is ended. These messages of one client come in their order. So a minority
// of the masters may be away, restarted, frozen or cut off, and nothing is lost. After an error a
// message may be delivered, or not, once at the most, and late. Messages of different clients come
// in no common order: two subscribers may get them in different ones.
//
// # All masters, and one channel
//
// A proxy publishes on all N masters and answers when w = ⌊N/2⌋+1 have taken it, with their votes
// counted as those of any operation: a master that belongs to another era, after a change of the
// masters, has none. A proxy with subscribers listens to all masters, and needs N-w+1 of them: any
// w have one of these. A SUBSCRIBE is answered when so many are heard, and so what is published
// after that reaches it. Where fewer are, it is refused.
//
// There is one channel on the masters, redlock-proxy:messages: and the prefix of the locks' keys,
// and the clients' channels are in the messages. One of the masters' for each of the clients' would
// cost each SUBSCRIBE a round trip to N masters before it may be answered, where a wait for a lock
// begins with one and mostly ends soon; patterns would need all of them anyway. The price is that
// each proxy with any subscriber gets all messages. The name begins as the proxies' own keys do;
// clients of the masters themselves do not use it, nor do keyspace events and client tracking.
//
// # Once, and in order
//
// A message says which proxy published it, by a random name, and which one of its messages it is
// (Source). The subscriber's proxy remembers which numbers of each proxy did not come (order),
// which are few, so that a message is taken from whichever master brings it first, and from no
// other. What it says further is the number of the message that the same client sent before it,
// which was decided by then. If that one has not come, this one waits for it, until a PING was
// answered by all masters that are heard: by then it has come, or no majority took it.
//
// Publishing goes over the lanes of package master, in the order in which it was asked, with the
// operations on locks; listening takes a connection of its own to each master. That of package wake
// will not do: it is one for each database, ends for other reasons, and is as strict about what it
// reads.
//
// # When a connection breaks
//
// What a master sends while it is not heard is missed there, and others have to bring it. A
// subscriber hears a set of masters without a break since it came (epochs). While these are N-w+1,
// each majority has one of them. When they are fewer, its connection is ended, as by a Redis that
// fails over: clients then subscribe again. A master that is heard again after a break does not
// count for those who came before it: a message may have been on its way all the while, at one
// master during that break and at another one during a later break of that one. So of five masters
// each subscriber outlives two breaks, however far apart, and a restart of all masters one after
// the other ends its connection once. No time plays a part in this. When the masters are changed,
// all are ended.
//
// A connection that is dead without anybody knowing is found out by a PING each second that is not
// answered for five: what was missed until then is notified then.
//
// # What is not promised
//
// A message may come late: at a master that was slow, after the reply to its PUBLISH. Whoever
// subscribes in between at another proxy that had no subscribers may hear it. At the proxy that
// published it nobody does: that knows which of its messages were decided before it began to
// listen. A master that lies can make up messages, as anybody can who may publish on the masters,
// and by their numbers have others count as delivered.
//
// # Bounds
//
// A message has 1 MB at the most, with its channel. What a master says is read within bounds, and
// what is no proxy's message is passed over. More gaps and more waiting messages than can be are an
// error (order.go), which ends the connection to the master that brought them, and nothing else.
package messages
