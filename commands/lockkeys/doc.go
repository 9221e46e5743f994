// Package lockkeys and the packages below it run Redis' own commands on lock keys, for lock
// libraries. LOCK and similar commands are in package locks. That package shares only
// keyspace/contents with lockkeys, for the encoding of tokens.
//
// Each command is a program over the quorum register: it reads keys, and decides how to change
// them.
//
//   - program: runs programs, and commits their changes; the engine of the packages below
//   - keyspace: strings, hashes, lists, sets and sorted sets on a view of some keys, without I/O
//   - blocking: commands that wait for an element; allkeys: commands on all keys of a database
//   - eval: EVAL and similar commands; script: Redis' API for scripts, in Lua (internal/lua)
//   - transaction: MULTI, WATCH and EXEC
//   - tracking: tells clients that use CLIENT TRACKING about changes
//
// This package has the table of ordinary commands ([Runner.Commands]). For each reply, the package
// also writes the audit log and warnings. If the client does not get the reply, the package
// withdraws the locks.
package lockkeys
