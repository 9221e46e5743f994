// Package faultlink simulates network faults between tests and a server. A Link forwards
// connections and can be cut. A CommandLink forwards commands and replies, and holds the commands
// and replies that a test chooses.
//
//	Link.Cut       lets nothing through, but keeps connections open, as in a partition
//	Link.Refuse    resets and refuses connections, although the server still runs
//	Link.Heal      ends Cut and Refuse
//	Link.Reset     resets the current connections; new connections succeed
//	Link.Retarget  forwards new connections to another server, and current ones to the old server
//	Link.Delay     delays replies
//	CommandLink    holds chosen commands or replies, so that they arrive late or never
package faultlink
