// Package register implements the protocol that keeps a lock key on N masters: taking, releasing,
// extending and reading it, and replacing its value by ballot. It only decides. Its [Masters]
// deliver operations, say whether a vote counts, and tell the time. So the same code runs in a
// proxy and in the explorer (package model), which tries all orders of messages.
//
// REGISTER.md, one folder up, states the invariants and the rules, and why they hold.
package register
