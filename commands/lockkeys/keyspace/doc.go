// Package keyspace carries out Redis' commands of strings, hashes, lists, sets and sorted sets on a
// [Snapshot]: a set of keys at one moment. It does no I/O and reads no clock. Commands and scripts
// run on a Snapshot as on a Redis 7.0. A Snapshot also has some later commands that locks use, such
// as MSETEX, DELEX and SET's IFEQ. The results are replies and edits ([Snapshot.Edits]): changes of
// keys, and the conditions under which the changes are right.
//
// On the masters, the value of a key is one string (package contents). A Snapshot decodes this
// string only if a command needs the elements. Random choices follow from a seed, so that a
// repeated run gets the same choices.
//
// A Snapshot may be a guess: the remaining time of a key may be [UnknownExpiry], and keys may be
// missing. A command that needs missing data gets [ErrNeedsRead] or an [UnreadError]. No reply is
// based on missing data.
package keyspace
