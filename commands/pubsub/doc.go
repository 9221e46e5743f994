// Package pubsub is the commands of messages at a lock server, as a Redis 7.0 has them: SUBSCRIBE, PUBLISH, PUBSUB and their kin. Who gets
// what is in package subscribers, how messages reach the other proxies in package quorum/messages.
//
// PUBLISH answers how many get the message, as far as this proxy knows: its own clients, and one for each other proxy that listens to
// anything. So 0 says that nobody gets it; any other number may be too high or too low. PUBSUB tells of this proxy's own clients.
//
// A SUBSCRIBE is refused with NOQUORUM where too few masters can be listened to, a PUBLISH where too few have taken it: then the message
// may be delivered, or not.
package pubsub
