// Package keyspace carries out Redis' commands of strings, hashes, lists, sets and sorted sets on a
// [Snapshot]: a set of keys at one moment. It does no I/O and reads no clock. Commands and scripts
// run on a Snapshot as on a Redis 7.0, plus some later commands that locks use, such as MSETEX,
// DELEX and SET's IFEQ. The results are replies and, in [Snapshot.Edits], changes with the
// conditions under which they are right.
//
// For the masters the value of a key is one string (package contents). It is decoded only if a
// command needs its elements. Random choices follow from a seed, so that a run can be repeated.
//
// A Snapshot may be a guess: the remaining time of a key may be [Unknown], and keys may be missing.
// A command that needs more gets [ErrNeedsRead] or an [UnreadError]. No reply is based on missing
// data.
package keyspace
