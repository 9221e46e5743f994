// Package track tracks the state of a client's connection to the upstream: its protocol, database,
// login, transaction and subscriptions.
//
// [ExpectedReplyFor] returns the expected replies to a forwarded command that may change the state.
// A [Tracker] holds the [AwaitedReplies], scans the upstream's bytes, and updates the [State] after
// each reply. It separates the replies to the client's commands from the replies to internal
// commands, which the proxy itself sends. The package has no locks and does no I/O: a relay guards
// its tracker by a lock.
package track
