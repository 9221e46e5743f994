// Package commands gives commands their meaning: it decides what becomes of what a client sent, and
// answers what is not for the upstream as Redis would.
//
// [Table] holds the commands that the proxy answers itself. [Table.Route] is the router (router.go): a pure
// function of the client's situation and the words, to a [Decision] that package proxy carries out.
//
// The rest has rooms of its own; each may use those after it, and one uses a part of one before: the client of command may be
// a subscriber (pubsub/subscribers):
//
//   - transaction: MULTI, WATCH and EXEC on lock keys
//   - eval: EVAL and similar commands on lock keys
//   - lockkeys: Redis' ordinary commands on lock keys; program runs them, blocking waits, allkeys are KEYS, SCAN, FLUSHALL
//   - locks: LOCK, UNLOCK, EXTEND, FENCE; holders are LOCKINFO and the like
//   - pubsub: messages of a lock server
//   - server: what the proxy says of itself: HELLO, CLIENT, INFO, COMMAND, PROXY …
//   - moving: the move of the locks between the upstream and the masters
//   - command: the call, the client, the reply, and how a command is described
//   - tracking: notifies clients with CLIENT TRACKING of changes of lock keys
//   - rights, auth: what a client may do, by the upstream, and by users of the proxy's own
//   - script: Redis' API for scripts; internal/lua is the interpreter, script/names finds a script's keys
//   - keyspace: Redis' commands on a view of some keys
//   - catalog: what is known of Redis' commands: words, keys, syntax
//   - uncovered: locks on keys that no pattern covers
//
// Error texts are Redis' own wherever Redis has one, because client libraries decide by them.
package commands
