// Package model explores the protocol of package register exhaustively within small bounds.
//
// It runs the register's own code, and for masters each operation's own Apply on a cell. The model
// adds only their environment: messages that arrive in any order, late, or never, lost answers,
// clocks, leases that end at each master independently, and masters that restart and catch up.
// After each answer, a single Redis must be able to have given all answers so far.
//
// # How it works
//
// A proxy is a deterministic machine: its state follows from its inputs (an operation starts, a
// round ends with some replies, a late reply comes, a callback fires). So the explorer runs it
// again from the beginning for each possible next input, with the blocking code as a coroutine. It
// stores the result, and treats proxies that behave alike as one state ([machine]). It stores the
// results of operations on a master's cell in the same way. A state of the whole system is then a
// few small numbers and the messages in flight. The search visits these states breadth first
// ([explorer]), up to a renumbering of the masters.
//
// # What is left out, and why that loses nothing
//
//   - A message that never arrives, and a proxy that never continues, need no event: they are the
//     states before the message arrives or the proxy continues. So is a crash of a proxy.
//   - After a round has ended, a proxy only sends messages, which may be in flight for long, and
//     answers, where earlier is stricter. So it continues with the answer that ends the round, or
//     never with that set of answers, unless its clock advances.
//   - A pause ends at once.
package model
