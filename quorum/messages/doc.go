// Package messages transports the messages of clients between lock servers through the masters,
// because a lock server has no upstream for messages.
//
// # Guarantees
//
// Once a majority of the masters has accepted a message, its PUBLISH returns a number. Each
// subscriber at any proxy whose SUBSCRIBE was confirmed before the PUBLISH gets the message exactly
// once, or the proxy closes the subscriber's connection. Such messages of one client arrive in
// their order. So a minority of the masters may be down, restarted, frozen or cut off without loss.
// If PUBLISH returns an error, the message may or may not be delivered, at most once, and possibly
// late. Messages of different clients have no common order: two subscribers may get them in
// different orders.
//
// # All masters, one channel
//
// A proxy publishes on all N masters, and replies when w = ⌊N/2⌋+1 have accepted the message. The
// masters' votes count like votes on any operation: after a change of the masters, a master of
// another era has no vote. A proxy with subscribers listens to all masters, and needs N-w+1
// connected masters, because any w masters include one of the connected masters. It confirms a
// SUBSCRIBE when that many masters are connected, so a later message reaches the subscriber. With
// fewer masters it refuses SUBSCRIBE.
//
// The masters have one channel for messages, redlock-proxy:messages: followed by the prefix of the
// locks' keys. The channels of clients are in the messages. If the masters had a channel for each
// channel of clients, each SUBSCRIBE would first cost a round trip to N masters, and patterns would
// need all channels anyway. The price is that each proxy with any subscriber gets all messages. The
// name begins like the proxies' own keys. Applications, keyspace events and client tracking do not
// use it.
//
// # Once, and in order
//
// A message contains a random name of the proxy that published it, and a number ([Source]). The
// subscriber's proxy remembers which numbers of each publishing proxy are missing (order). So it
// accepts a message from the master that delivers it first, and ignores copies. A message also
// contains the number of the previous message of the same client. The proxy sends a message only
// after the previous message has been decided. If the previous message is missing, the new message
// waits until all connected masters have answered a PING. By then the missing message has arrived,
// or no majority accepted it.
//
// Publishing uses the lanes of package master, in the order of the requests, together with the
// operations on locks. Listening uses a separate connection to each master. The connections of
// package watch are not suitable: there is one for each database, they end for other reasons, and
// they accept only their own messages.
//
// # When a connection breaks
//
// A proxy misses the messages of a master while it is not connected to the master, and other
// masters must deliver them. For each subscriber the proxy knows the masters that have been
// connected without a break since the subscriber joined (epochs). While N-w+1 such masters remain,
// each majority includes one of them. With fewer, the proxy closes the subscriber's connection, as
// a Redis that fails over does, and the client subscribes again. A master that is connected again
// does not count for earlier subscribers. A message may be in transit all the time, and reach one
// master during that master's break, and another master during a later break. So with five masters
// each subscriber survives two breaks, regardless of the time between them. A restart of all
// masters, one after the other, closes each subscriber's connection once. A change of the masters
// closes the connections of all subscribers.
//
// The proxy sends a PING each second on each connection to a master. It closes a connection that is
// silent for five seconds while a reply is pending, or for ten seconds otherwise. Then it closes
// the connections of the affected subscribers.
//
// # Not guaranteed
//
// A message may arrive late, from a slow master, after the reply to its PUBLISH. A client that
// subscribes meanwhile, at another proxy without subscribers, may get it. At the publishing proxy
// this cannot happen, because the proxy knows which of its messages were decided before it began to
// listen. A malicious master can invent messages, like any client that may publish on the masters,
// and their numbers can make other messages count as delivered.
//
// # Limits
//
// A message is limited to 1 MB, including its channel. The proxy reads the masters' replies within
// limits, and ignores texts that are not messages of a proxy. If more messages are missing or
// waiting than the limits allow (order.go), the proxy ends only the connection to the master that
// delivered them.
package messages
