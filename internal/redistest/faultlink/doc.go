// Package faultlink simulates network faults between tests and a server. A Link forwards
// connections and can be cut. A CommandLink forwards commands and replies, and holds those that a
// test chooses.
//
//	Link.Cut       connections stay open and nothing arrives, as in a partition; Heal undoes it
//	Link.Refuse    new connections are refused and old ones reset, but the server runs and keeps its data
//	Link.Reset     the connections of this moment are reset, new ones succeed
//	Link.Retarget  new connections reach another server, old ones stay
//	Link.Delay     replies come late
//	CommandLink    chosen commands or replies are late or lost, even after their connection was closed
package faultlink
