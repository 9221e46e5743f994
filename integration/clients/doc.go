// Package clients tests the proxy with client libraries and lock libraries of many languages. The
// folder of each language has up to three programs:
//
//   - One locks with LOCK and UNLOCK through the language's client library, and reports each check
//     (RunAll).
//   - One (locks) uses the lock libraries of its language, or sends the same bytes as they do. A
//     test sends it operations line by line, once for a Redis alone and once for the proxy. Both
//     must give the same answers.
//   - One (connect) connects as its library does by default, and tries each kind of command, for
//     docs/compatibility.md.
//
// Package relay uses the program c/relay.c. The tests need the build tag integration.
package clients
