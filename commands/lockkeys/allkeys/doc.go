// Package allkeys is the commands that see all keys of a database, or remove them, where some keys
// are lock keys: KEYS, SCAN and DBSIZE return the upstream's keys and the lock keys, FLUSHDB and
// FLUSHALL remove both.
//
// The upstream is always asked first, with the client's own command on its own connection, so that
// it decides what the client may do: its error is the reply, and then nothing is done on the
// masters.
//
// The lock keys are found by the names on the masters (quorum's Names), and count where a majority
// holds them, as EXISTS would say. Locks of LOCK on other keys are none of the client's keys, and
// stay.
package allkeys
