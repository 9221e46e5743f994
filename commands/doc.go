// Package commands gives commands their meaning: it parses what a client sent,
// does it, and writes the reply as Redis would.
//
// [Table] holds the commands that the proxy answers itself: the lock commands
// (lock.go, with their grammar in grammar.go), and, for a proxy without an
// upstream, what client libraries send when they connect (hello.go, client.go,
// info.go …). A [Client] is what a command may know and change of the connection
// it came from; a [Reply] collects RESP2 or RESP3.
//
// Ordinary commands, scripts and transactions on lock keys are programs over the
// quorum register (program.go): each runs on a view of its keys, in package register
// and for scripts in package script, and what it changes is committed under the
// condition that the view still holds; else it runs again on what is there. A program
// that replaces a value, or runs again, first waits for its turn (programturn.go): a
// round trip more for those that contend, and none for who takes a free lock or gives
// his own back. One whose edits may have been seen before they were taken back is not
// carried out twice (programdoubt.go).
//
// Which keys are lock keys is in keys.go, where each command has its keys in
// keyspecs.go. route.go and routemulti.go tell what is for the masters, by itself and
// in transactions, and why something else is refused.
//
// Error texts are Redis' own wherever Redis has one, because client libraries
// decide by them.
package commands
