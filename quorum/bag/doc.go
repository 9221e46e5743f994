// Package bag keeps several keys in one cell, so that one vote is about all of them. It is pure:
// what a cell was found to hold goes in ([Open]), what is to be put there comes out ([Bag.Seal]).
//
// # What stands in the cell
//
// The key that has the cell's own name is kept by itself, as if there were no bags, for as long as
// no other key is in the cell. As soon as there is one, what the cell holds is a bag: each key with
// its value, its version and its end.
//
// # Ends
//
// A cell has one end on each master, by that master's clock, and those differ a little. The end of
// a key is kept as the time by which it comes before the cell's own, so that no wall clock is
// needed and it runs down by itself: what is left of a key is what is left of the cell, less that.
//
//   - A key that is kept keeps its end to the millisecond. Where the cell has to stay for longer,
//     or need not stay for so long, its end is shifted, by the same time on each master, and the
//     distances of all keys with it (Decision.Shift of package register). However often that is
//     done, nothing adds up, unless a master missed the change before: if its end cannot be told
//     from the others', it keeps it, and else it gets one that is later by what a ballot took.
//   - A key that gets a new time is measured from the master of those asked whose cell ends first.
//     So it ends on none of them before its time, and on the others later by as much as their ends
//     differ.
//   - A key is over when it is over by the master whose cell ends last. Every majority has a master
//     on which the key lasts for as long as its holder believes, so that nobody ever takes it
//     before.
//
// The cell outlasts the last of its keys by [shortestRest] at the least, so that no command sees
// the end of the cell while a key exists. Where a key has no time the cell has a hundred years,
// which are renewed when half of them are over.
package bag
