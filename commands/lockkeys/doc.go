// Package lockkeys, with those below it, is what makes lock libraries work: Redis' own commands on
// lock keys. LOCK and its kin are in package locks and need none of it but how a token is written
// (keyspace/contents).
//
// Each command is a program over the quorum register: what it reads, and what it makes of that.
//
//   - program: runs programs, and commits what they change. The engine of all that follows
//   - keyspace: strings, hashes, lists, sets and sorted sets on a view of some keys, without I/O
//   - blocking: commands that wait for an arrival; allkeys: those that see all keys
//   - eval: EVAL and similar commands; script: Redis' API for scripts, in Lua (internal/lua)
//   - transaction: MULTI, WATCH and EXEC
//   - tracking: notifies clients with CLIENT TRACKING of changes
//
// This package has the table of ordinary commands ([Runner.Commands]), and what each reply needs
// beside it: the audit log, warnings, what is undone where a reply is not delivered.
package lockkeys
