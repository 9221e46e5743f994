// Package clients tests the proxy with client libraries and lock libraries of many languages. The
// folder of each language has up to five programs:
//
//   - lock uses LOCK and UNLOCK through the language's client library, and reports each check
//     (RunAll).
//   - locks uses the lock libraries of the language, or sends the same bytes. A test sends it
//     operations line by line, once for a single Redis and once for the proxy. Both must give the
//     same results.
//   - connect connects like its library by default, and tries each kind of command, for
//     docs/compatibility.md.
//   - users logs in as a user of the proxy, and sends commands.
//   - cluster is a cluster client that sends the commands that a test writes to it line by line.
//
// Some tests also run the programs of docs/examples.md and docs/recipes.md.
//
// Package relay uses the program c/relay.c. The tests need the build tag integration.
package clients
