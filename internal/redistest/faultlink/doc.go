// Package faultlink is the way to a server, on which tests have things go wrong: a Link forwards
// connections and can be cut, a CommandLink forwards commands and answers and holds those that a
// test chooses.
//
//	Link.Cut       connections stand and nothing arrives: the server is well, the way to it is not; Heal undoes it
//	Link.Refuse    new connections are refused and old ones reset, but the server lives and keeps its data
//	Link.Reset     the connections of this moment are reset, new ones succeed
//	Link.Lead      new connections reach another server, old ones stay
//	Link.Delay     answers come late
//	CommandLink    chosen commands or answers are late, or lost, also those of a connection that was closed since
package faultlink
