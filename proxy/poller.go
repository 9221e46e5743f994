package proxy

// interest is what a poller is to tell of a connection.
type interest uint8

const (
	// theEnd: that the other end sends no more, once.
	theEnd interest = iota
	// anything: that there is something to read, or the end; the first time only, and
	// at once if it is there already.
	anything
)

// tag names a connection to the poller: the client's ID, and for the connection to
// the upstream its number among those of that client, from 1; so that what is told
// of one that has been closed is not taken to be about the next.
type tag uint64

func tagOf(client int64, dial uint16) tag { return tag(client)<<16 | tag(dial) }

func (t tag) client() int64 { return int64(t >> 16) }
func (t tag) dial() uint16  { return uint16(t) }
