// Package model explores the protocol of package register exhaustively within small bounds.
//
// It runs the register's own code, and for masters the Apply method of each operation. The model
// adds only their environment: messages that arrive in any order, late, or never, lost replies,
// clocks, leases that expire at each master independently, and masters that restart and catch up.
// After each reply to a client, a single Redis must be able to have given all replies so far.
//
// # How it works
//
// A proxy is a deterministic machine: its state follows from its inputs (an operation starts, a
// round ends with some replies, a late reply comes, a callback fires). So the explorer can run the
// proxy again from the beginning for each possible next input, with the blocking code as a
// coroutine. It stores the result, and treats proxies that behave alike as one state ([machine]).
// It stores the results of operations on a master's cell in the same way. A state of the whole
// system is then a few small numbers and the messages in flight. The search visits these states
// breadth first ([explorer]), up to a renumbering of the masters.
//
// # Omitted events
//
//   - A message that never arrives needs no event: the search also visits the states before it
//     arrives. The same holds for a proxy that never continues, and for a proxy that crashes.
//   - After a round has ended, a proxy only sends messages and replies to clients. A message may be
//     in flight for any time, and an early reply to a client is the strictest case. So a proxy
//     continues together with the reply that ends the round. It continues later only if its clock
//     advances.
//   - A pause before a retry ends immediately.
package model
