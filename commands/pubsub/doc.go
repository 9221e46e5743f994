// Package pubsub implements the commands for messages at a lock server, as Redis 7.0 has them
// (SUBSCRIBE, PUBLISH, PUBSUB …), and delivers messages to clients. Package quorum/messages carries
// messages to the other proxies.
//
// PUBLISH returns how many clients get the message, as far as this proxy knows. It counts this
// proxy's own subscribers, plus one for each other proxy with any subscriber. So 0 means that no
// client gets the message. Any other number may be too high or too low. PUBSUB shows this proxy's
// own clients.
//
// A SUBSCRIBE fails with NOQUORUM if the proxy can listen to too few masters. A PUBLISH fails with
// NOQUORUM if too few masters have accepted the message. Then the message may or may not be
// delivered.
//
// A [Hub] holds the subscriptions of all clients of this process, and receives the messages of all
// proxies from the masters. A [Subscriber] holds the subscriptions of one client, and the messages
// that the client has not received yet.
//
// # One stream
//
// A goroutine writes messages to a client between two replies. It runs while messages wait. The
// order matters for two commands: the confirmation of a SUBSCRIBE precedes the messages of its
// channel, and no message follows an UNSUBSCRIBE. These commands therefore include the arrived
// messages in their reply, and delay later messages until the reply is written ([Subscriber.Take]).
//
// # Slow clients
//
// The proxy limits the messages that wait for a client, like Redis' client-output-buffer-limit for
// subscribers. If more than 32 MB wait, or more than 8 MB for 60 s, the proxy closes the client's
// connection. It also closes the connection of a client that reads nothing for a minute. A slow
// client does not affect other clients.
package pubsub
