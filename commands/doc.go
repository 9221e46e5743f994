// Package commands gives commands their meaning: it decides what becomes of what a client sent, and
// answers what is not for the upstream as Redis would.
//
// [Table] holds the commands that the proxy answers itself. [Table.Route] is the router (router.go): a pure
// function of the client's situation and the words, to a [Decision] that package proxy carries out. What it
// must know of scripts and functions is in scriptroute.go and functions.go.
//
// The lock commands are in lock.go, with their grammar in grammar.go. Ordinary commands on lock keys
// (lockkeys.go), scripts (scripts.go) and transactions (transaction.go) are programs over the quorum register:
// what they have in common is in programs.go, how they run is in package program.
//
// The rest has rooms of its own:
//
//   - command: the call, the client, the reply, and how a command is described
//   - spec: what is known of Redis' commands, in one table
//   - keys: where the keys of a command stand, and which are lock keys
//   - keyspace: Redis' commands on a view of some keys
//   - holders: who holds a lock, and that somebody holds it no more
//   - allkeys: the commands that see all keys, or remove them
//   - blocking: the commands that wait until something is put under a lock key
//   - audit: a line for each grant and release
//   - program: programs, from the view to what is committed
//   - rights: what a client may do at the upstream
//   - acl, users: users of the proxy's own
//   - script: the scripts' API and cache; script/lua is the interpreter, script/names finds a script's keys
//   - server: what the proxy says of itself: HELLO, CLIENT, INFO, COMMAND, PROXY …
//   - subscribers, pubsub: who gets messages at a lock server, and the commands for that
//   - tracking: what clients with CLIENT TRACKING are told of lock keys
//   - syntax: how Redis reads words, and its errors for them
//   - strays: lock keys at the upstream while the locks are at the masters
//   - uncovered: locks on keys that no pattern covers
//   - lru: what was used last
//
// Error texts are Redis' own wherever Redis has one, because client libraries decide by them.
package commands
