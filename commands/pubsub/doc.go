// Package pubsub is the commands of messages at a lock server, as a Redis 7.0 has them (SUBSCRIBE,
// PUBLISH, PUBSUB and their kin), and who gets them, and how. How messages reach the other proxies
// is in package quorum/messages.
//
// PUBLISH answers how many get the message, as far as this proxy knows: its own clients, and one
// for each other proxy that listens to anything. So 0 says that nobody gets it; any other number
// may be too high or too low. PUBSUB tells of this proxy's own clients.
//
// A SUBSCRIBE is refused with NOQUORUM where too few masters can be listened to, a PUBLISH where
// too few have taken it: then the message may be delivered, or not.
//
// A [Hub] knows the subscriptions of all clients of this process, and takes what all proxies
// publish from the masters (package quorum/messages). A [Subscriber] is one client: its
// subscriptions, and the messages that are on their way to it.
//
// # One stream
//
// Messages go to a client between two replies, in a goroutine that lives while there are some.
// Where their place among the replies matters (a confirmation comes before the messages of its
// channel, and after an unsubscription there are none) the commands take what has come into their
// reply, and hold back what comes until that is written ([Subscriber.Take]).
//
// # Slow clients
//
// What waits for a client is bounded as by Redis' client-output-buffer-limit for subscribers:
// beyond 32 MB at once, or 8 MB for 60 s, its connection ends, and no other one's. So it does for a
// client that takes nothing for a minute.
package pubsub
