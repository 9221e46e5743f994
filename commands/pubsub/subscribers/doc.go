// Package subscribers is who gets messages at a lock server, and how they get to the clients.
//
// A [Hub] knows the subscriptions of all clients of this process, and takes what all proxies publish from the masters (package
// quorum/messages). A [Subscriber] is one client: its subscriptions, and the messages that are on their way to it.
//
// # One stream
//
// Messages go to a client between two replies, in a goroutine that lives while there are some. Where their place among the replies matters (a
// confirmation comes before the messages of its channel, and after an unsubscription there are none) the commands take what has come
// into their reply, and hold back what comes until that is written ([Subscriber.Take]).
//
// # Slow clients
//
// What waits for a client is bounded as by Redis' client-output-buffer-limit for subscribers: beyond 32 MB at once, or 8 MB for 60 s, its connection ends,
// and no other one's. So it does for a client that takes nothing for a minute.
package subscribers
