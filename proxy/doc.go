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
// connection that waits for bytes holds no buffer (wire.go), so that an idle client
// costs little. While a command waits a further goroutine watches the connection
// (watch.go), to notice at once that the client leaves.
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
package proxy
