// Package cell is what one master holds under a lock key, and what is done there.
//
// A [Cell] is absent, plain (as LOCK left it: the attempt that created it and the token), in
// register form (as a ballot left it), or blocking (left by a catch-up that could not distinguish a
// granted lock from the rest of a released one, or several from each other). Whatever else stands
// under the key is foreign: a client that locks on the masters directly wrote it, and it is never
// changed.
//
// The operations are a Lua script each, but for the plain SET NX, and the same in Go: Apply is what
// the explorer of the protocol runs (package model), and the tests run both on the same cells and
// compare. What the operations are good for, and why they are safe, is in quorum/REGISTER.md.
//
// # The encoding
//
// A cell is one string, so that SET NX takes a lock in one native command and the key on the master
// is the client's own:
//
//	#p attempt token
//	#r incarnation promised accepted state nn changes text
//	#b incarnation
//
// without the spaces. Attempts, incarnations (the attempt that created the cell) and ballots have
// 36 digits each, so that they compare as strings; state is v (a value) or - (none: removed); nn is
// the number of the changes, of 12 bytes each, that led to the text: the last one of each proxy.
package cell
