package allkeys

import "strconv"

// A cursor of SCAN is the upstream's own while that goes on, and one of the lock keys from its end
// on. The latter has bit 52, which no cursor of a Redis has: these are less than twice the number
// of keys. Nor has it a higher one, since some clients keep cursors in floating-point numbers.
const (
	cursorMark     = 1 << 52
	positionBits   = 32
	generationBits = 20
)

// cursor is how far a SCAN has come with the lock keys: all before a position were returned. It is
// enough by itself for any proxy to go on; generation is the snapshot with which that is quicker.
type cursor struct {
	generation uint32 // of generationBits
	position   uint32
}

// number is the cursor as a client gets it.
func (c cursor) number() uint64 {
	return cursorMark | uint64(c.generation)<<positionBits | uint64(c.position)
}

// readCursor takes a number apart; ours is false where it is not of the lock keys.
func readCursor(n uint64) (c cursor, ours bool) {
	return cursor{generation: uint32(n>>positionBits) & (1<<generationBits - 1), position: uint32(n)}, n>>52 == 1
}

// parseCursor reads what a client, or the upstream, gives for a cursor.
func parseCursor(text []byte) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}
