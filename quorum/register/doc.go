// Package register implements the protocol that keeps a lock key on N masters: taking, releasing,
// extending and reading it, and replacing its value by ballot. It only decides: its [Masters]
// deliver operations, report which votes count, and measure time. So the same code runs in a proxy
// and in the explorer (package internal/model), which tries all orders of messages.
//
// ../REGISTER.md states the invariants and rules, and why they hold.
package register
