// Package proxy serves Redis clients. RELAY.md describes how a client's commands reach its
// upstream, and explains the design.
//
// # The path of a connection
//
// redcon listens and accepts. Its parser must never see a byte from the network: a few bytes sent
// before any login can crash redcon 1.6.2, hang it, or make it use much memory. So the listener
// given to it (listener.go) returns connections whose first read yields a constant command from the
// proxy, the trigger. When redcon calls the handler for the trigger, the handler detaches the
// connection and starts a session on it. (To give redcon the client's first command instead would
// cost up to 512 MB for a long command, and 4 KB of redcon's reader for each silent client.)
//
// A session (session.go) reads through an input (input.go), which finds the frames by package
// resp's scanner. The proxy looks a command up as soon as its name has arrived. It collects its own
// commands whole, at most maxFrame bytes, and runs them. It forwards all other commands as they
// arrive or, without an upstream, discards them and replies that they are unknown. One loop
// (serve.go) serves clients with and without an upstream: a lock server has a relay that never
// connects.
//
// # Forwarding
//
// Each type has one role. relay holds the connection to the upstream: connect.go makes the
// connection, and replies.go copies the replies to the client. asker sends internal commands to the
// upstream, on the client's connection. sender forwards scanned commands, or answers them.
// authChecker handles logins (authchecker.go, users.go). locationRouter routes commands on lock
// keys (location.go, locktraffic.go). keySearch finds lock keys. dispatcher scans (serve.go),
// decides (routing.go, toolong.go), and runs the proxy's own commands (own.go, statecommand.go).
//
// The proxy's own commands are the commands that the proxy itself answers, such as LOCK. An
// internal command is a command that the proxy itself sends to the upstream, such as PING or ACL
// WHOAMI; the reply goes to the proxy, and not directly to the client.
//
// # Files
//
// The files of this package do not depend on each other in a cycle; docs/files_test.go enforces
// that. A file depends only on files further down this list: listener; drain, polling,
// pausereports; server; serve, the loop of one client; the files that serve calls (routing, own,
// statecommand, toolong); dispatcher, which joins the parts; its parts (authchecker, location,
// sender, asker); session, the client's own connection; connect, replies, relay; shared, the state
// that all clients of a server share; clientwriter and input.
//
// # Packages
//
// resp parses the protocol. netconn reads and writes connections, and has the poller. track tracks
// the state of a connection to the upstream. upstream makes such connections. login tracks the
// client's user and permissions. cluster follows the nodes of a Redis Cluster, each of which has a
// Server of its own; all of them share one ProxyState. translate replaces the addresses of nodes in
// replies, and nodes has their table. None of these packages imports package proxy.
//
// # Goroutines
//
// A session has one goroutine. Its relay has a second goroutine, the reply copier, which writes the
// upstream's replies to the client. While a command waits, a watch reads from the client
// (watch.go), to notice immediately that the client leaves. A parked session has no goroutine: the
// server's one polling goroutine waits in its place (polling.go). A client that tracks keys has its
// own goroutine while there are invalidations to send (package tracking). A subscriber of a lock
// server has its own goroutine while there are messages to send (package pubsub), and so has a
// client with kept locks while there are pushes about them (package keepalive). These goroutines
// write to parked clients, too.
//
// # Locks
//
// A goroutine locks in this order, the outermost first:
//
//   - Server.mu guards the list of sessions.
//   - clientWriter.mu guards all that the session's goroutine and the reply copier share, and
//     records which goroutine may write to the client. No goroutine holds this lock during a write
//     (clientwriter.go), because the poller and the reload of users take the lock, too, and serve
//     more than one client.
//   - session.mu guards the read deadline of the client's connection, and whether the session is
//     parked. No goroutine waits while it holds this lock.
//
// A goroutine that holds a lock of package upstream takes none of these locks. The comment of a
// field names the lock or goroutine that the field belongs to.
package proxy
