package sharing

import (
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"sync"

	"redlock-proxy/proxy/wire"
)

const (
	// maxOut is how much waits to be written, in bytes, before who sends more has to wait. Each may add MaxFrame to it.
	maxOut = 256 << 10
	// turns is how often one client writes for all before it goes on with its own.
	turns = 8
	// large is from how many bytes on a reply counts as large: what streams so much over a connection is in the way of others.
	large = 64 << 10
	// heap is how much of a client's replies may wait for it, in bytes, before the connection waits as well, if nobody else is owed
	// anything on it.
	heap = 1 << 20
	// endless is from how many bytes on a reply is taken for one without an end, if others are owed something behind it.
	endless = 1 << 30
)

// conn is a connection that is shared.
type conn struct {
	pool   *Pool
	group  Group
	wire   *wire.Conn
	memory wire.Loan // the reader's
	term   uint64    // of the upstream, as the connection was made

	mu   sync.Mutex
	room sync.Cond // there may be room in out
	// order is who is owed what, of all that ever was put into out.
	order order[*Lane]
	// out is to be written; spare is memory for the next one; writing: somebody writes.
	out, spare []byte
	writing    bool
	// only is who alone may send more; sealed: nobody else may, and where only is nil, nobody at all.
	sealed bool
	only   *Lane
	// left is why it was ended before the upstream did; nil: it was not.
	left error
}

func newConn(p *Pool, g Group, c net.Conn, term uint64) *conn {
	shared := &conn{pool: p, group: g, term: term}
	shared.order.pushes = g.Proto == 3
	shared.order.detours.On = p.turned != nil
	shared.room.L = &shared.mu
	shared.wire = wire.New(c, &shared.memory, &wire.Activity{})
	return shared
}

// isOnly reports whether this one alone may send more.
func (c *conn) isOnly(who *Lane) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed && c.only == who
}

// isOpen reports whether everybody may send.
func (c *conn) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.sealed
}

// takes reports whether it takes commands of this one. It is called with mu held.
func (c *conn) takes(from *Lane) bool { return !c.sealed || c.only == from }

// send sends whole commands for so many replies. It reports false where nothing of them was or will be sent.
func (c *conn) send(from *Lane, commands []byte, replies int) bool {
	c.mu.Lock()
	for c.takes(from) && c.writing && len(c.out) >= maxOut {
		c.room.Wait()
	}
	if !c.takes(from) {
		c.mu.Unlock()
		return false
	}
	c.out = append(c.out, commands...)
	c.order.owe(from, replies)
	first := !c.writing
	c.writing = true
	c.mu.Unlock()
	if first {
		runtime.Gosched() // others that have something to send do so first
		if c.write(turns) {
			c.pool.running.Go(func() { c.write(0) })
		}
	}
	return true
}

// write writes what has gathered, so many times, or until there is no more. It reports whether there is more.
func (c *conn) write(times int) (more bool) {
	for n := 1; ; n++ {
		c.mu.Lock()
		if len(c.out) == 0 {
			c.writing = false
			c.mu.Unlock()
			return false
		}
		batch := c.out
		c.out, c.spare = c.spare[:0], nil
		c.room.Broadcast()
		c.mu.Unlock()
		_, err := c.wire.Write(batch)
		if err != nil {
			_ = c.wire.Close() // the reader finds it, and deals with it
		}
		c.mu.Lock()
		if cap(batch) <= 2*maxOut && !c.sealed {
			c.spare = batch
		}
		more = len(c.out) > 0
		c.mu.Unlock()
		if more && n == times {
			return true
		}
	}
}

// read deals out replies until the connection ends.
func (c *conn) read() {
	err := c.deal()
	_ = c.wire.Close()
	c.memory.Rest()
	c.mu.Lock()
	c.sealed, c.only, c.out, c.spare = true, nil, nil, nil
	c.room.Broadcast()
	debts, inside := c.order.left()
	if c.left != nil {
		err = c.left
	}
	c.mu.Unlock()
	c.pool.forget(c)
	for i, d := range debts {
		d.to.client.Lost(d.n, inside && i == 0, err)
	}
}

// deal is read up to the end, and says why it came.
func (c *conn) deal() (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			c.pool.log.Error("a shared connection failed", "panic", problem, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error")
		}
	}()
	var failed error
	var pieces []piece[*Lane]
	err = c.wire.Pump(func(n int) bool {
		p := c.memory.Room()[:n]
		pieces, failed = c.cut(pieces[:0], p)
		var behind *Lane
		for i, part := range pieces {
			if part.push {
				p = p[part.size:]
				continue
			}
			text := p[:part.size]
			if part.judged {
				text = part.instead
			}
			if part.turned != "" {
				c.pool.turned(part.turned)
			}
			if c.bring(text, part) >= heap {
				behind = part.to
			}
			if part.inside > c.pool.endless && !c.isAlone(part.to) {
				failed = errEndless
			}
			p, pieces[i].to = p[part.size:], nil
		}
		if behind != nil && c.isAlone(behind) { // not before all have what has come for them
			behind.client.Catch()
		}
		return failed == nil && !c.isDone()
	})
	if failed != nil {
		return failed
	}
	return err
}

// cut finds whose what has come is.
func (c *conn) cut(pieces []piece[*Lane], p []byte) ([]piece[*Lane], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		part, err := c.order.next(p)
		if err != nil {
			return pieces, err
		}
		pieces, p = append(pieces, part), p[part.size:]
	}
	return pieces, nil
}

// bring gives a client what has come for it, and tells how much it has not taken.
func (c *conn) bring(p []byte, part piece[*Lane]) (held int) {
	held = part.to.client.Take(p, part.ended, part.inside > 0)
	if part.inside < large && held < large {
		return held
	}
	part.to.client.Large()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seal(part.to)
	return held
}

// isAlone reports whether nobody else is owed anything.
func (c *conn) isAlone(who *Lane) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.alone(who)
}

// seal has nobody else send anything. It is called with mu held.
func (c *conn) seal(but *Lane) {
	if c.sealed {
		if c.only != but {
			c.only = nil
		}
		return
	}
	c.sealed, c.only = true, but
	c.room.Broadcast()
}

// isDone reports whether a connection that takes no more has answered all.
func (c *conn) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed && c.order.empty() {
		c.only = nil
		return true
	}
	return false
}

// retire has it take no more commands, and end when it has answered all.
func (c *conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seal(nil)
	if c.order.empty() {
		_ = c.wire.Close()
	}
}

// leave ends the connection if the upstream has failed over since it was made. What has been answered is still dealt out.
func (c *conn) leave(term uint64, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != term {
		c.left, c.sealed, c.only = cause, true, nil
		c.room.Broadcast()
		c.wire.Abandon()
	}
}
