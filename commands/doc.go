// Package commands gives commands their meaning: it decides what becomes of what a client sent, and
// answers what is not for the upstream as Redis would.
//
// [Table] holds the commands that the proxy answers itself. [Table.Route] is the router
// (router.go): a pure function of the client's situation and the words, to a [Decision] that
// package proxy carries out.
//
// The rest has rooms of its own; each may use those after it:
//
//   - server: what the proxy says of itself: HELLO, CLIENT, INFO, COMMAND, PROXY …
//   - move: the move of the locks between the upstream and the masters
//   - lockdetect: locks on keys that no glob covers
//   - locks: LOCK, UNLOCK, EXTEND, FENCE; LOCKINFO and the like
//   - lockkeys: Redis' own commands on lock keys, and scripts and transactions
//   - pubsub: messages of a lock server
//   - auth: users of the proxy's own
//   - command: the call, the client, the reply, and how a command is described
//   - rights: what a client may do, by the upstream
//   - catalog: what is known of Redis' commands: words, keys, syntax
//
// Error texts are Redis' own wherever Redis has one, because client libraries decide by them.
package commands
