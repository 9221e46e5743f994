// Package proxy speaks to the clients: bytes in, bytes out.
//
// # The way of a connection
//
// redcon listens and accepts. Its parser must never see a byte from the network:
// redcon 1.6.2 can be crashed, hung and grown by a few bytes sent before any
// login. So the listener given to it (listener.go) hands out connections whose
// first read is a greeting of our own, one whole command that is always the same.
// The handler that redcon calls for it detaches the connection and starts a
// session on the bare one. (Giving redcon the client's own first command, once
// scanned, would serve as well, but would hold a first command of 512 MB in
// memory, and redcon's reader with its 4 KB for every client that stays silent.)
//
// A session (session.go) reads through an input, which finds the frames with the
// incremental scanner of frame.go: Redis' limits, strict integers and error texts,
// at 20 to 30 ns for a small command. As soon as a command's name is known it is
// looked up: ours is collected whole, at most maxFrame bytes, and run; any other is
// forwarded as it streams past or, without an upstream, thrown away and answered as
// unknown. Nothing large is ever held.
//
// A session is one goroutine, and one more brings the replies of its upstream. A
// connection that waits for bytes holds no buffer (wire.go). While a command waits a
// further goroutine watches the connection (watch.go), to notice at once that the
// client leaves.
//
// # What idle clients cost
//
// A session on whose connections nothing happens for one or two seconds is parked, if
// it stands between two commands: its goroutines end, and with them two thirds of its
// memory (park.go, pause.go). One goroutine of the server (polling.go) waits in their
// place, on an epoll set of the proxy's own (poller_linux.go) that holds the sockets
// beside Go's. Whatever happens on either connection starts the goroutines again, as
// does the server when it drains. Subscribers and clients that are blocked at the
// upstream are parked like others; their state is in the session and its relay. A
// client whose LOCK waits is not, nor one whose upstream is behind TLS, and nobody is
// on systems without epoll.
//
// No event is lost on the way: the set is asked for a level when a session is parked,
// so that what arrived before is told at once, and a woken session begins by reading.
// It is parked, woken and told to end under one lock, so that it always has either its
// goroutine or its place in the set, never both and never none. Neither goroutine
// waits for the client to read anything while the session is being parked.
//
// # What a byte costs
//
// Nearly all of it is the system calls, and on Linux there are four for each request
// that is forwarded alone: two reads and two writes. A read that did not fill its
// buffer is not followed by another one that would find nothing. With Go's poller alone
// that would be wrong, for it tells only once of bytes and an end of the stream that
// arrive together; so the set of the proxy's own tells of ends, apart from bytes. (The
// socket option TCP_INQ tells of a FIN, but not of a reset.) And since these calls
// never block, Go's scheduler is not told of them.
//
// # The relay
//
// Each client has an upstream connection of its own, made for its first forwarded
// command and closed with it. Bytes go both ways as they came (forward.go,
// relay.go); the replies are scanned (reply.go) to know when the upstream owes
// nothing, and to learn from its answers what the proxy must know to give replies
// of its own: protocol, database, login, transaction, subscriptions (awaited.go,
// learned.go). CHECKLIST.md goes through what such a relay must get right.
//
// A command of the proxy's own is a barrier in its client's stream. It runs when
// the upstream has answered all that was sent before it, and what follows it is
// sent when it is done. An earlier plan was to let both run at once and to merge
// the replies in order; but a pipeline of SET and UNLOCK must not release the lock
// before the data are written, nor one of LOCK and SET write before the grant. The
// price is a round trip where a pipeline changes between the two kinds.
//
// A forwarded command is never sent twice. When the upstream fails, what it has not
// answered is answered with an error that names it; the client keeps its connection
// only if nothing is lost with the upstream's: no login, no selected database, no
// name, no transaction, no subscription.
//
// # Lock keys
//
// Where lock keys are configured, each command that has keys is looked at before any
// of it is forwarded (keysearch.go): if its one key is its first argument, as soon as
// that is there; else when all of it is, or its first megabyte. What is longer and
// may name a lock key further on is looked at as it passes by; if it does, the
// connection ends before the upstream has the whole command. So an upstream never
// gets a command on a lock key. Commands on other keys cost a look-up and a match.
//
// A command on lock keys is then one of the proxy's own, a barrier like any
// (routing.go). A transaction is either the upstream's or the proxy's. It is the
// proxy's if a lock key is watched, if the first command in it is on a lock key (the
// upstream, which had begun it, is told to discard it), or if the upstream cannot be
// reached. In it only commands on lock keys have a place; in the upstream's they have
// none. What is in the wrong one is refused and the whole not carried out: at the
// upstream by a command that it refuses.
//
// Commands without keys that see all keys (KEYS, SCAN, DBSIZE, RANDOMKEY, FLUSHDB,
// FLUSHALL, SWAPDB) are the upstream's and do not reach the masters, nor do the names
// of channels, the patterns of SORT's BY and GET, or commands that the table in
// package commands does not have. Where the upstream's stream cannot be followed
// (behind a MULTI in silence, or SYNC), a command on a lock key ends the connection.
//
// What belongs to a lock but is done at the upstream, such as a message to those who
// wait, goes over connections of the proxy's own (aside.go).
package proxy
