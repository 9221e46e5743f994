// Package clients tries client libraries and lock libraries of other languages on the proxy. A
// folder for each language holds three kinds of programs:
//
//   - one locks by LOCK and UNLOCK with the language's client library, and reports each check
//     (RunAll);
//   - one (locks) imitates the lock libraries of its language, word by word on the wire. It does
//     what a test tells it line by line, once on a Redis by itself and once through the proxy, and
//     both must give the same answers.
//   - one (connect) connects as its library does by default, and does a little of everything: for
//     docs/compatibility.md.
//
// The program c/relay.c is that of package relay. The tests need the build tag integration.
package clients
