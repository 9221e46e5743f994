package sharing

import (
	"context"
	"errors"
)

// Lane makes the way of a client, which is in no group yet.
func (p *Pool) Lane(c Client) *Lane { return &Lane{pool: p, client: c} }

// Lane is the way of one client over connections that are shared, one at a time. It belongs to one goroutine.
type Lane struct {
	pool   *Pool
	client Client
	group  *group // nil: the client does not share
	place  *place
	conn   *conn
}

// Enter has the lane be in this group. Nothing may be owed to it. It reports false where that has no room for it: then the lane is in none.
func (l *Lane) Enter(g Group) bool {
	l.Leave()
	l.group, l.place = l.pool.enter(g)
	return l.group != nil
}

// Leave has it be in none, and have no connection.
func (l *Lane) Leave() {
	if l.group != nil {
		l.pool.leave(l.group)
	}
	l.group, l.place, l.conn = nil, nil, nil
}

// Send sends whole commands for so many replies, after all that was sent before on the same connection. It reports false where they were not sent, and
// will not be: then the lane must be opened, but not before all replies have come or are lost. It waits as long as the upstream does
// not take what is to be written.
func (l *Lane) Send(commands []byte, replies int) bool {
	return l.conn != nil && l.conn.send(l, commands, replies)
}

// Only reports whether the connection takes commands of no other client any more, so that none is in the way of another.
func (l *Lane) Only() bool { return l.conn != nil && l.conn.isOnly(l) }

// Open has the lane have a connection of this group that takes commands. Nothing may be owed to it. The error is that of the upstream's, or
// of the context's.
func (l *Lane) Open(ctx context.Context, g Group) (err error) {
	l.conn = nil
	if (l.group == nil || l.group.Group != g) && !l.Enter(g) {
		return errFull
	}
	l.conn, err = l.pool.connect(ctx, l.group, l.place)
	return err
}

// errFull says that there are too many groups. Who may have to do without one enters it first.
var errFull = errors.New("too many databases are in use to share connections")
