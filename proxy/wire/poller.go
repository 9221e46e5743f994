package wire

// interest is what a poller is to tell of a connection.
type interest uint8

const (
	// theEnd: that the other end sends no more, once.
	theEnd interest = iota
	// anything: that there is something to read, or the end; the first time only, and
	// at once if it is there already.
	anything
)

// Tag names a connection to the poller: the client's ID, and for the connection to
// the upstream its number among those of that client, from 1; so that what is told
// of one that has been closed is not taken to be about the next.
type Tag uint64

// TagOf is the tag of a client's connection, with 0, or of one to its upstream.
func TagOf(client int64, dial uint16) Tag { return Tag(client)<<16 | Tag(dial) }

// Client is the client's ID.
func (t Tag) Client() int64 { return int64(t >> 16) }

// Dial is the number of the connection to the upstream, or 0.
func (t Tag) Dial() uint16 { return uint16(t) }
