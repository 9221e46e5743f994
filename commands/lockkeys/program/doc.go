// Package program runs commands, scripts and transactions on lock keys. A [Program] runs on a view
// of its keys, and what it makes of them is committed in the way that costs least: taking,
// releasing and extending as LOCK, UNLOCK and EXTEND do, anything else by ballot, for which it runs
// again on what stands there then.
//
// The view is a guess at first, where there is one, then what a majority of the masters holds. A
// wrong guess is never the basis of an answer, and seldom costs a round trip: what refuses it
// mostly says what the key holds, as a read would have. Where another was quicker, or the program
// turns out to use a key that was not read, it runs again.
//
// Several keys are taken, extended or removed by one program; none is replaced under the condition
// of another, for each key is kept by its own vote, and no vote is about two. But keys that stand
// in one cell, since they have the same tag, are changed together by one ballot, whatever depends
// on what.
//
// What a program does at the upstream are its side effects: prepared there before anything is
// committed, so that a refusal is the whole answer, and done after it.
package program
