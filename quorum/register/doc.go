// Package register is the protocol that keeps a lock key on N masters: taking, releasing,
// extending, reading, and replacing by ballots. It decides; how operations reach the
// masters, when a vote counts, and what time it is, is up to its [Masters]. So the same
// code runs in a proxy and in the explorer (package model) that tries all orders of
// messages.
//
// REGISTER.md, one folder up, has the invariants, the rules and why they hold.
package register
