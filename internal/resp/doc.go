// Package resp reads and writes RESP, the protocol of Redis, with peers that are not trusted: it
// checks limits before it uses any length that a peer sends. It does no I/O of its own, and imports
// no other package of this module.
//
// Requests of clients:
//
//   - A [FrameScanner] finds requests in a client's stream, with the rules of Redis and within
//     [RequestLimits]. It stores no payload, so that the proxy can pass requests on while they
//     arrive. [Words], [Excerpt] and [EndsInCRLF] read frames that it has accepted.
//
// Replies of the upstream, RESP2 and RESP3:
//
//   - A [ReplyScanner] finds the ends of replies in a stream that the proxy passes on unchanged. It
//     needs no limits, because it stores no reply.
//   - [SimpleReplyLen] does the same for the most common replies, if they are complete.
//   - [FirstLine], [FirstError], [Header], [WholeReplyLen] and [Texts] read complete replies to the
//     proxy's own commands.
//
// Replies on the proxy's own connections, mostly to masters, within [Limits]:
//
//   - A [Reader] decodes replies of RESP2, and the kinds of RESP3 that [NewRESP3Reader] lists.
//   - [Limit] checks the same limits in front of a client library that trusts the lengths in
//     replies. It accepts only RESP2.
//
// The Append functions encode commands, and the headers of RESP3, into a buffer that is reused. The
// proxy writes other replies with the functions of redcon.
package resp
