// Package keygroup keeps several keys in one cell, so that one vote changes all of them. It does no
// I/O. [Open] reads the contents of a cell, and [Group.Encode] returns the new contents.
//
// # Content of the cell
//
// A key with the cell's own name is stored unchanged while it is the only key. With another key,
// the cell holds a keygroup: each key with its value, its version and its expiry.
//
// # Holders of a lock
//
// Several clients may hold a lock together. [Holders] keeps them in the value of its key as the
// members of a keygroup, so the rules of the next section also apply to the expiry of a holder. If
// the key is in a keygroup, the value of its holders expires with the key.
//
// # Expiry
//
// A cell has one expiry on each master, by that master's clock. These times differ a little. The
// expiry of a key is stored as its expiry offset to the expiry of the cell. So no wall clock is
// needed: the remaining time of a key is the remaining time of the cell minus the expiry offset.
//
//   - A kept key keeps its expiry to the millisecond. If the cell must expire later, or may
//     expire earlier, each master shifts the expiry of its cell by the same time. All expiry
//     offsets change by that time, too (register.Decision.Shift). No error adds up, except on a
//     master that missed the previous change. That master keeps its expiry if the proxy cannot
//     distinguish it from the expiry on the other masters. Otherwise its expiry is later, by the
//     duration of a ballot.
//   - A new expiry of a key is relative to the cell that expires first among the masters that
//     replied. So on some masters the key expires late, by the difference between the cells. It
//     expires early only where a master kept an expiry that the proxy cannot distinguish
//     (register.GrantedLock.Early), and the validity is shorter by that.
//   - A key expires when it has expired on the master whose cell expires last. Every majority has a
//     master that keeps the key for as long as its holder relies on it, so no other client takes it
//     before.
//
// The cell outlasts its last key by at least [minMargin], so that it does not expire during a
// command. If a key has no expiry, the cell gets a TTL of a hundred years, and a new one after
// fifty years.
package keygroup
