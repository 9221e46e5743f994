package netconn

// interest is the kind of event that a poller reports for a connection.
type interest uint8

const (
	// streamEnd is reported once, when the other end sends no more.
	streamEnd interest = iota
	// readable is reported once, when there are bytes to read or the stream has ended; at once if
	// that is true already.
	readable
)

// Tag identifies a connection to the poller: the client's ID and, for a connection to the upstream,
// its number among those of that client, from 1. The number prevents an event of a closed
// connection from being taken for one of the next connection.
type Tag uint64

// TagOf returns the tag of a client's connection, if dial is 0, or of its connection to the
// upstream.
func TagOf(client int64, dial uint16) Tag { return Tag(client)<<16 | Tag(dial) }

// Client returns the client's ID.
func (t Tag) Client() int64 { return int64(t >> 16) }

// Dial returns the number of the connection to the upstream; 0 for the client's own connection.
func (t Tag) Dial() uint16 { return uint16(t) }
