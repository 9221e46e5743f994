// Package allkeys runs the commands that list or remove all keys of a database, if some keys are
// lock keys. KEYS and SCAN return the upstream's keys and the lock keys, DBSIZE counts both, and
// FLUSHDB and FLUSHALL remove both.
//
// The proxy first sends the client's own command to the upstream, on the client's own connection.
// So the upstream checks the client's permissions. For a SCAN that has reached the lock keys, the
// proxy asks the upstream only whether the client may run SCAN. If the upstream returns an error,
// the client gets this error, and the lock keys do not change.
//
// If the upstream is a cluster, each of these commands concerns one node. A lock key belongs to the
// node that serves the slot of the key (command.Client.ListsKey). So a client that asks all nodes
// gets the key once. The same is true of these commands in a script on lock keys.
//
// The proxy finds the lock keys by the names on the masters (quorum's Names). A lock key exists if
// a majority holds it, as for EXISTS. Locks that LOCK takes on other keys are not keys of a client:
// these commands neither return nor remove them.
package allkeys
