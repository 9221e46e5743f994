// Package program runs commands, scripts and transactions on lock keys. A [Program] runs on a view
// of its keys, and its changes are committed in the cheapest way. It takes, releases and extends
// keys the way LOCK, UNLOCK and EXTEND do. Any other change is made by ballot, for which the
// program runs again on the values at that moment.
//
// The first view is a guess, if there is one; the next view is read from a majority of the masters.
// A wrong guess is never the basis of a reply. It seldom costs a round trip, because a master that
// refuses mostly reports the value of the key. A program runs again if another client was faster,
// or if it uses a key that was not read.
//
// One program can take, extend or remove several keys. It cannot change one key depending on
// another, because each key has its own vote, and no vote covers two keys. Keys of one cell are
// different: they have the same hash tag, and one ballot changes them together.
//
// Commands that a program sends to the upstream are its side effects. The upstream accepts them
// before anything is committed, so a refusal is the whole reply. It executes them after the commit.
package program
