// Package cell defines the state that one master holds under a lock key, and the operations on it.
//
// A [Cell] is absent, plain (as LOCK left it), in register form (as a ballot left it), blocking, or
// a mark. A catch-up leaves a blocking cell if it cannot distinguish a granted lock from the
// leftover of a released lock. It also leaves a blocking cell if it does not know which of several
// locks was granted. A mark reserves a key that a proxy is about to restore. Any other value is
// foreign: a client that locks on the masters directly wrote it, and no proxy changes it.
//
// Each operation exists as a Lua script, except the plain SET NX, and as Go code (Apply), which the
// explorer (package internal/model) runs. Tests run both on the same cells. quorum/REGISTER.md
// explains the purpose of the operations and why they are safe.
//
// # The encoding
//
// A cell is one string, and its key on the master has the name that the client chose. So a native
// SET NX takes a lock. The string is one of these, without the spaces:
//
//	#p attempt token
//	#r incarnation promised accepted state nn changes text
//	#b incarnation
//	#m incarnation ballot
//
// Attempts, incarnations and ballots have 36 digits each, so they compare as strings. The state is
// v (a value) or - (removed). nn is the number of changes that follow, 12 bytes each: the last
// change of each proxy that led to the text.
package cell
