// Package track follows the state of a client's connection to the upstream: its protocol, database,
// login, transaction and subscriptions.
//
// [SlotFor] returns the replies that a forwarded command expects, if they may change the state. A
// [Tracker] holds the replies that are [Awaited], scans what the upstream sends, and updates the
// [State] by each reply. It separates the replies to the client's commands from those to the
// proxy's own. The package has no locks and does no I/O: a relay guards its tracker by its own
// lock.
package track
