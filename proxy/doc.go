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
// thrown away as it streams past, so that nothing large is ever held.
//
// A session is one goroutine, and its buffers grow with use and go again, so that
// an idle client costs little. Only while a command waits does a second goroutine
// watch the connection (watch.go), to notice at once that the client leaves.
package proxy
