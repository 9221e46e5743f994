// Package model tries the protocol of package register exhaustively over small bounds.
//
// What runs is the register's own code and what a master does to a cell by its own Apply;
// the model is only what lies between and around them: messages that arrive in any order,
// late, or never, answers that are lost, clocks, leases that end at each master by itself,
// masters that restart and catch up. After each answer the history must be one that a
// single Redis could have given.
//
// # How it goes
//
// A proxy is a deterministic machine: its state follows from what happened to it (an
// operation started, a round ended with such replies, a late reply came, a callback
// fired). So it is run again from the beginning for each thing that may happen next, the
// blocking code as a coroutine; what comes of it is remembered, and proxies that cannot be
// told apart are one ([machine]). The same goes for a master's cell under an operation.
// A state of the whole is then a few small numbers and the messages under way, and the
// search goes breadth first over them ([explorer]), up to a renumbering of the masters.
//
// # What is left out, and why nothing is lost by it
//
//   - A message that is never delivered again, and a proxy that never goes on, need no
//     event: they are what the search sees before it is delivered or goes on. A crash is that.
//   - What a proxy does once a round has ended only sends messages, which may be under way
//     for long, and answers, where sooner is stricter. So it goes on with the answer that
//     ends the round, or never with that set of answers; unless its clock went on.
//   - A pause is over at once.
package model
