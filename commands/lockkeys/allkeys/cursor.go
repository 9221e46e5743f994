package allkeys

import "strconv"

// cursorMark marks the cursors of lock keys. SCAN returns lock keys after the upstream's last key.
// Redis' own cursors do not reach this bit, because they grow only with the number of keys. Higher
// bits stay zero, because some clients keep cursors in floating-point numbers.
const (
	cursorMark     = 1 << 52
	positionBits   = 32
	snapshotIDBits = 20
)

// cursor holds the progress of a SCAN in the lock keys: the SCAN has returned all keys before
// position. Any proxy can continue from the position. snapshotID names the snapshot that makes this
// faster.
type cursor struct {
	snapshotID uint32 // snapshotIDBits bits
	position   uint32
}

// encode returns the cursor as clients see it.
func (c cursor) encode() uint64 {
	return cursorMark | uint64(c.snapshotID)<<positionBits | uint64(c.position)
}

// decodeCursor decodes a cursor. isLockCursor reports whether it is a cursor of lock keys.
func decodeCursor(n uint64) (c cursor, isLockCursor bool) {
	return cursor{snapshotID: uint32(n>>positionBits) & (1<<snapshotIDBits - 1), position: uint32(n)}, n>>52 == 1
}

// parseCursor parses a cursor that a client or the upstream sent.
func parseCursor(text []byte) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}
