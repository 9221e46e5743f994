// Package commands gives commands their meaning: it parses what a client sent,
// does it, and writes the reply as Redis would.
//
// [Table] holds the commands that the proxy answers itself: the lock commands
// (lock.go, with their grammar in grammar.go), and, for a proxy without an
// upstream, what client libraries send when they connect (hello.go, client.go,
// info.go …). A [Client] is what a command may know and change of the connection
// it came from; a [Reply] collects RESP2 or RESP3.
//
// Error texts are Redis' own wherever Redis has one, because client libraries
// decide by them.
package commands
