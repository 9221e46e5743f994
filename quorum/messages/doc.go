// Package messages transports the messages of clients between lock servers through the masters. A
// lock server has no upstream that could do it.
//
// # Guarantees
//
// A message that a majority of the masters has accepted (its client got a number) is delivered
// exactly once to each subscriber, at any proxy, that was confirmed before it was published, or the
// connection of that subscriber is closed. Such messages of one client arrive in their order. So a
// minority of the masters may be down, restarted, frozen or cut off without loss. After an error a
// message may or may not be delivered, at most once, and possibly late. Messages of different
// clients have no common order: two subscribers may get them in different orders.
//
// # All masters, one channel
//
// A proxy publishes on all N masters, and replies when w = ⌊N/2⌋+1 have accepted the message. Their
// votes count like votes on any operation: after a change of the masters, a master of another era
// has no vote. A proxy with subscribers listens to all masters, and needs N-w+1 of them, because
// any w masters include one of these. A SUBSCRIBE is answered when that many are connected, so a
// later message reaches the subscriber. With fewer it is refused.
//
// The masters have one channel for messages, redlock-proxy:messages: followed by the prefix of the
// locks' keys. The channels of clients are in the messages. If the masters had a channel for each
// channel of clients, each SUBSCRIBE would first cost a round trip to N masters, and patterns would
// need all channels anyway. The price is that each proxy with any subscriber gets all messages. The
// name begins like the proxies' own keys. Clients of the masters themselves do not use it, nor do
// keyspace events and client tracking.
//
// # Once, and in order
//
// A message names the proxy that published it, by a random name, and has a number ([Source]). The
// subscriber's proxy remembers the few missing numbers of each proxy (order). So it accepts a
// message from the master that delivers it first, and ignores copies. A message also contains the
// number of the previous message of the same client, which was decided by then. If that message is
// missing, the new message waits for it until all connected masters have answered a PING: by then
// the missing message has arrived, or no majority accepted it.
//
// Publishing uses the lanes of package master, in the order of the requests, together with the
// operations on locks. Listening uses a connection of its own to each master. The connections of
// package watch are not suitable: there is one for each database, they end for other reasons, and
// they accept only their own messages.
//
// # When a connection breaks
//
// Messages that a master sends while it is not connected are missed, and other masters must deliver
// them. For each subscriber the proxy knows the masters that have been connected without a break
// since it subscribed (epochs). While these are N-w+1, each majority includes one of them. When
// they are fewer, the subscriber's connection is closed, as by a Redis that fails over, and clients
// subscribe again. A master that is connected again does not count for earlier subscribers: a
// message may be in transit all the while, and reach one master during that master's break and
// another master during a later break. So with five masters each subscriber survives two breaks,
// however far apart, and a restart of all masters one after the other closes its connection once.
// This does not depend on time. A change of the masters closes the connections of all subscribers.
//
// A dead connection is detected by a PING each second: it is closed if it is silent for five
// seconds. The affected members are then notified.
//
// # Not guaranteed
//
// A message may arrive late, from a slow master, after the reply to its PUBLISH. A client that
// subscribes in between, at another proxy without subscribers, may get it. At the publishing proxy
// this cannot happen, because it knows which of its messages were decided before it began to
// listen. A malicious master can invent messages, like any client that may publish on the masters,
// and their numbers can make other messages count as delivered.
//
// # Limits
//
// A message has at most 1 MB, including its channel. Replies of masters are read within limits, and
// texts that are not messages of a proxy are ignored. If more messages are missing or waiting than
// the limits allow (order.go), only the connection to the master that delivered them ends.
package messages
