// Package commands decides how the proxy treats each command of a client. It answers the commands
// that do not go to the upstream, as Redis would.
//
// [Table] holds the commands that the proxy answers itself. [Table.Route] is the router
// (router.go). It maps the client's situation and the words of a command to a [Decision], which
// package proxy carries out. Route does no I/O.
//
// These are the subpackages. Each may import only the subpackages after it:
//
//   - server: commands about the proxy itself: HELLO, CLIENT, INFO, COMMAND, PROXY …
//   - move: the move of the locks between the upstream and the masters
//   - lockdetect: detection of locks on keys that are not lock keys
//   - locks: LOCK, UNLOCK, EXTEND, MLOCK, MUNLOCK, MEXTEND, FENCE; LOCKINFO, LOCKLIST, FORCEUNLOCK
//   - lockkeys: Redis' own commands on lock keys, scripts and transactions
//   - pubsub: messages of a lock server
//   - auth: the proxy's own users
//   - command: the call, the client, the reply, and the description of a command
//   - rights: the permissions of a client at the upstream
//   - catalog: the tables of Redis' commands: words, keys, syntax
//
// If Redis has the same error, the proxy uses Redis' text, because client libraries depend on it.
package commands
