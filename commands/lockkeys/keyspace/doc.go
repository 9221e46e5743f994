// Package keyspace carries out Redis' commands of strings, hashes, lists, sets and sorted sets on a
// view of some keys, and returns what they change. It does no I/O and knows no clock: a [Space] is
// a set of keys at one moment, commands and scripts run on it as on a Redis 7.0 (with those of
// later ones that locks use, such as MSETEX, DELEX and SET's IFEQ), and what comes of it are
// replies and, in [Space.Edits], changes with the conditions under which they are right.
//
// What a key holds is one string for the masters (package contents), and is taken apart only where
// a command looks into it. Random choices follow from a seed, so that a run can be repeated.
//
// A view may be a guess: keys of which the remaining time is [Unknown], or that are not in it at
// all. A command that needs to know more gets [ErrNeedsRead] or an [UnreadError], and nothing is
// answered out of thin air.
package keyspace
