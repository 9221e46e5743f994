// Package keygroup keeps several keys in one cell, so that one vote changes all of them. It does no
// I/O. [Open] reads the contents of a cell, and [Group.Encode] returns the new contents.
//
// # What the cell holds
//
// The key with the cell's own name is stored without a keygroup, as long as no other key is in the
// cell. Once there is another key, the cell holds a keygroup: each key with its value, its version
// and its end.
//
// # Ends
//
// A cell has one end on each master, by that master's clock, and these ends differ a little. The
// end of a key is stored as its distance to the end of the cell. So no wall clock is needed, and
// the remaining time of a key counts down by itself: it is the remaining time of the cell minus the
// distance.
//
//   - A key that is kept keeps its end to the millisecond. If the cell must stay longer, or need
//     not stay as long, its end is shifted by the same time on each master, and so are the
//     distances of all keys (Decision.Shift of package register). However often this happens, no
//     error adds up, unless a master missed the change before. If the end on that master cannot be
//     distinguished from the others, the master keeps it. Otherwise the master gets an end that is
//     later by the duration of a ballot.
//   - The new end of a key is measured from the master, among those asked, whose cell ends first.
//     So the key ends on no master before its time, and on some later by the difference of their
//     ends.
//   - A key expires when it has expired on the master whose cell ends last. Every majority has a
//     master on which the key lasts as long as its holder relies on it. So no other client takes it
//     before.
//
// The cell outlasts its last key by at least [minMargin], so that no command meets the end of the
// cell while a key exists. If a key has no expiry, the cell gets a hundred years, and is renewed
// when half of them have passed.
package keygroup
