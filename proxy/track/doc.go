// Package track knows the state of a client's connection to the upstream: its protocol,
// database, login, transaction and subscriptions.
//
// Of a forwarded command whose answer may change it, [SlotFor] says what is awaited. A
// [Tracker] holds what is [Awaited], scans what the upstream sends, and learns from each answer
// what the [State] is. It tells apart what is for the client and what the proxy asked for
// itself. All of it is without locks and I/O: a relay guards its tracker by its own lock.
package track
