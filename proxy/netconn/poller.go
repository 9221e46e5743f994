package netconn

// interest is the kind of event that a poller reports for a connection.
type interest uint8

const (
	// streamEnd is reported once, when the other end has ended its stream.
	streamEnd interest = iota
	// readable is reported once, when there are bytes to read or the stream has ended; immediately
	// if that is true already.
	readable
)

// Tag identifies a connection in the poller's events. It consists of the client's ID and, for a
// connection to the upstream, the connection's number, counted from 1 for each client. The number
// distinguishes events of a closed connection from events of the next connection.
type Tag uint64

// TagOf returns the tag of a client's own connection, if connID is 0, or of its connection to the
// upstream.
func TagOf(client int64, connID uint16) Tag { return Tag(client)<<16 | Tag(connID) }

// Client returns the client's ID.
func (t Tag) Client() int64 { return int64(t >> 16) }

// ConnID returns the number of the connection to the upstream; 0 for the client's own connection.
func (t Tag) ConnID() uint16 { return uint16(t) }
