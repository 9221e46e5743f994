// Package keygroup keeps several keys in one cell, so that one vote changes all of them. It does no
// I/O. [Open] reads the contents of a cell, and [Group.Encode] returns the new contents.
//
// # What the cell holds
//
// The key with the cell's own name is stored as it is while it is alone. With another key, the cell
// holds a keygroup: each key with its value, its version and its expiry.
//
// # Expiry
//
// A cell has one expiry on each master, by that master's clock. These times differ a little. The
// expiry of a key is stored as its distance to the expiry of the cell. So no wall clock is needed:
// the remaining time of a key is the remaining time of the cell minus the distance.
//
//   - A kept key keeps its expiry to the millisecond. If the cell must stay longer, or need not
//     stay as long, its expiry is shifted by the same time on each master, and so are all distances
//     (register.Decision.Shift). No error adds up, unless a master missed the change before: it
//     keeps an expiry that cannot be distinguished from the others, or gets one that is later by
//     the duration of a ballot.
//   - A new expiry of a key is measured on the master, among the masters asked, whose cell expires
//     first. So the key expires on no master early, and on some later by the difference of the
//     cells.
//   - A key expires when it has expired on the master whose cell expires last. Every majority has a
//     master that keeps the key for as long as its holder relies on it, so no other client takes it
//     before.
//
// The cell outlasts its last key by at least [minMargin], so that it does not expire during a
// command. If a key has no expiry, the cell gets a hundred years, renewed after half of them.
package keygroup
