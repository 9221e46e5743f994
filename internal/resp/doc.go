// Package resp reads and writes RESP, the protocol of Redis, with peers that are not trusted: what
// they say is bounded before anything relies on it. It does no I/O of its own, and imports nothing
// else of this module.
//
// Requests of clients:
//
//   - A [FrameScanner] finds requests in a client's stream, in the dialect of Redis and within
//     [RequestLimits]. It holds no payload, so that requests can be passed on while they arrive.
//     [Words], [Excerpt] and [EndsInCRLF] read frames that it has let pass.
//
// Replies of the upstream, RESP2 and RESP3:
//
//   - A [ReplyScanner] finds the ends of replies in a stream that is passed on as it comes. It has
//     no limits, because nothing of a reply is held.
//   - [SimpleReply] does the same for the commonest replies, where they are whole.
//   - [FirstLine], [FirstError], [Header], [WholeReply] and [Texts] read whole replies to what the
//     proxy asked.
//
// Replies of masters, RESP2 only, within [Limits]:
//
//   - A [Reader] decodes replies from a connection that is the caller's alone.
//   - [Bound] puts the same limits in front of a client library that believes the lengths it is
//     told.
//
// The Append functions encode commands, and the headers of RESP3, into a buffer that is used again;
// the rest is written with those of redcon.
package resp
