// Package program runs commands, scripts and transactions on lock keys. The [Engine] runs a
// [Program] on a view of its keys, and commits its changes in the cheapest way. It takes, releases
// and extends keys the way LOCK, UNLOCK and EXTEND do. It makes any other change by ballot: the
// program then runs again, on the values in the ballot.
//
// If the program has a guess, the first view is this guess. The Engine reads the next view from a
// majority of the masters. A wrong guess is never the basis of a reply. It seldom costs a round
// trip, because a master that refuses usually reports the value of the key. A program runs again if
// another client changed a key first, or if the program uses a key that is not in the view.
//
// One program can take, extend or remove several keys. It cannot change one key depending on
// another, because each key has its own vote, and no vote covers two keys. Keys of one cell are
// different: they have the same hash tag, and one ballot changes them together.
//
// Commands that a program sends to the upstream are its side effects. The upstream accepts or
// refuses the commands before the commit. If it refuses, its error is the reply, and the program
// changes nothing. The upstream executes the commands after the commit.
package program
