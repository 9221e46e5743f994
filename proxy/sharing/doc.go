// Package sharing sends the commands of many clients over few connections to the upstream, and deals the replies out.
//
// A client may share as long as nothing that it sends belongs to its connection. [May] says it of a command by its name, [Whole]
// of a frame by its bytes. What such clients send is appended to one buffer in the order in which it comes, and written together.
// The replies come in the same order: whose the next one is, is known by who is owed how many, and nothing else ([order]).
//
// Clients share with those that speak the same protocol and use the same database: their [Group]. What else they say of themselves is
// nothing to the others.
//
// A connection is never waited for while it is locked, nor is a client: it takes what it can at once, and has
// what it cannot take brought by itself. Where too much has gathered, or a reply is large, the connection takes no more commands
// of others (they get a new one), and ends when all that it owes has come.
//
// # Goroutines
//
// Each connection has one that reads. Who sends something while nobody writes, writes for all that do so meanwhile; after some
// writes it leaves that to a goroutine that ends when there is nothing more. [Pool.Close] waits for all of them.
package sharing
