// Package allkeys runs the commands that list or remove all keys of a database, if some keys are
// lock keys. KEYS, SCAN and DBSIZE return the upstream's keys and the lock keys, FLUSHDB and
// FLUSHALL remove both.
//
// The proxy always asks the upstream first, with the client's own command on the client's own
// connection. So the upstream decides what the client may do. If the upstream returns an error, the
// client gets this error, and the lock keys do not change.
//
// The proxy finds the lock keys by the names on the masters (quorum's Names). A lock key exists if
// a majority holds it, as for EXISTS. Locks that LOCK takes on other keys are not keys of a client:
// these commands neither return nor remove them.
package allkeys
