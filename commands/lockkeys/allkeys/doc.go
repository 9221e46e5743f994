// Package allkeys runs the commands that list or remove all keys of a database, if some keys are
// lock keys. KEYS, SCAN and DBSIZE return the upstream's keys and the lock keys, FLUSHDB and
// FLUSHALL remove both.
//
// The upstream is always asked first, with the client's own command on its own connection, so that
// it decides what the client may do. If it returns an error, that is the reply, and the lock keys
// are not changed.
//
// With a cluster as upstream the commands are those of one node. Each lock key belongs to the node that
// serves its slot, so that a client that asks all masters gets it once (command.Client.ListsKey).
//
// The lock keys are found by the names on the masters (quorum's Names), and count if a majority
// holds them, as for EXISTS. Locks that LOCK takes on other keys are not keys of a client: these
// commands neither return nor remove them.
package allkeys
