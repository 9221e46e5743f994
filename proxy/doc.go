// Package proxy serves Redis clients: bytes in, bytes out. What they get of an upstream through it,
// how and why, is in RELAY.md.
//
// # The way of a connection
//
// redcon listens and accepts. Its parser must never see a byte from the network: redcon 1.6.2 can
// be crashed, hung and grown by a few bytes sent before any login. So the listener given to it
// (listener.go) hands out connections whose first read is a greeting of our own, one whole command
// that is always the same. The handler that redcon calls for it detaches the connection and starts
// a session on the bare one. (Giving redcon the client's own first command, once scanned, would
// serve as well, but would hold a first command of 512 MB in memory, and redcon's reader with its 4
// KB for every client that stays silent.)
//
// A session (session.go) reads through an input (input.go), which finds the frames with package
// resp's scanner. As soon as a command's name is known it is looked up: ours is collected whole, at
// most maxFrame bytes, and run; any other is forwarded as it streams past or, without an upstream,
// thrown away and answered as unknown. One loop (serve.go) does so for clients with and without an
// upstream: to it a lock server is a relay that never connects.
//
// # What is forwarded
//
// Each type has one role. relay is the connection to the upstream: it is connected (connect.go),
// and brings replies (replies.go). asker asks as the client; sender has what was scanned go there,
// or answers it; authChecker is the login (authchecker.go, users.go); locationRouter is about lock
// keys at the upstream (location.go, carries.go); keySearch finds lock keys. dispatcher scans
// (serve.go), decides (routing.go, toolong.go), and runs what is the proxy's own (own.go,
// follow.go).
//
// # Files
//
// A file uses names of files below it, and of no other; docs/files_test.go holds it to that. From
// the top: listener; drain, polling, holdback; server; serve, the loop of one client; what that
// calls (routing, own, follow, toolong); dispatcher, which has them at hand; its parts
// (authchecker, location, sender, asker); session, the client's own connection; connect, replies,
// relay; shared, what all clients share; line and input.
//
// # Packages
//
// resp knows the protocol; wire reads and writes connections, and has the poller; track knows the
// state of a connection to the upstream; upstream makes such connections; login is who a client is.
// None of them imports this one.
//
// # Goroutines
//
// A session is one goroutine. Its relay's courier is another one, which brings the replies of the
// upstream. While a command waits, a watch reads from the client (watch.go), to notice at once that
// it leaves. A parked session has none of them: the server's one goroutine of polling waits in
// their place (polling.go). What a client tracks has a goroutine of its own while there is
// something to be told (package tracking), which writes to parked clients, too. So has a subscriber
// at a lock server, while there are messages for it (package pubsub).
//
// # Locks
//
// In this order, the first one outermost:
//
//   - Server.mu: the sessions that there are.
//   - line.mu: all that the session's goroutine and the courier share, and whose turn it is to
//     write to the client. It is never held while somebody writes (line.go): the poller and who
//     reads users again take it, too, and serve more than one client.
//   - session.mu: the read deadline of the client's connection, and whether the session is parked.
//     Nothing is waited for with it held.
//
// The locks in package upstream are held for a few assignments, and no other is taken with them.
// Fields say which lock or goroutine they belong to.
package proxy
