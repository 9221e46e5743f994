package master

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/register"
)

// linkLimits bound what a master answers to one batch: an answer is flat, and what stands under a
// key is what a proxy wrote there, in a frame or by a script. Clients may ask for more together
// than there is room for; so that costs what they asked for, and not the link.
func linkLimits(all *resp.Allowance) resp.Limits {
	return resp.Limits{Line: 64 << 10, Bulk: 32 << 20, Elements: 1 << 17, Depth: 1, Total: maxAnswers, Together: all, Skip: 256}
}

// maxAnswers bounds the answers to one batch, and all that are being read from a master over all
// links, in bytes.
const maxAnswers = 64 << 20

// keptOut is the most of a buffer that is kept for the next batch, in bytes.
const keptOut = 64 << 10

// errUnasked is the cause where a master sends what was not asked.
var errUnasked = errors.New("it answers what was not asked")

// redisLink is a connection to a master that go-redis has dialled and logged in, and that
// is read and written here since: two system calls for a batch, no pool, no boxing.
//
// One goroutine receives, and stays in its read while nothing is under way, so that the end
// of the connection is noticed then. Whoever sends has the deadline set only where none is
// set yet, or a later one; where it is over too early, the reader sets the next.
type redisLink struct {
	transport *redisTransport
	conn      net.Conn
	in        *resp.Reader

	// sending is held while a batch is encoded and written. out is its buffer, writeUntil
	// the deadline that is set for writing.
	sending    sync.Mutex
	out        []byte
	writeUntil time.Time

	mu sync.Mutex
	// flight is the batch under way, or nil.
	flight *Flight
	// armed is the deadline that is set for reading, or zero.
	armed  time.Time
	broken bool
	// came is how many bytes came since what is under way was last waited for; only the receiver
	// uses it.
	came int
}

func newRedisLink(t *redisTransport, conn net.Conn) *redisLink {
	k := &redisLink{transport: t, conn: conn}
	k.in = resp.NewReader(patientConn{k}, linkLimits(t.answers))
	return k
}

// Send is of Link.
func (k *redisLink) Send(f *Flight) bool {
	k.sending.Lock()
	defer k.sending.Unlock()
	f.old = k.transport.old.Load()
	k.out = k.out[:0]
	k.appendOps(f)
	k.out = f.check.AppendTo(k.out)
	f.sent = time.Now()
	f.until, f.excused = f.sent.Add(k.transport.waiting.time()), false
	if k.writeUntil.Before(f.until) {
		k.writeUntil = f.until.Add(time.Second)
		_ = k.conn.SetWriteDeadline(k.writeUntil)
	}
	if !k.begin(f) {
		return false
	}
	if _, err := k.conn.Write(k.out); err != nil {
		k.Close() // receive returns that
	}
	if cap(k.out) > keptOut {
		k.out = nil
	}
	return true
}

// appendOps encodes the operations of a batch.
func (k *redisLink) appendOps(f *Flight) {
	if !k.transport.apart.Load() {
		f.releases.gather(f.ops)
	}
	for i, o := range f.ops {
		switch {
		case f.releases.first(i):
			k.out = f.releases.all.AppendTo(k.out, k.transport.missing.Swap(false))
		case !f.releases.has(i):
			k.out = o.appendTo(k.out, f.old)
		}
	}
}

// begin notes a batch that is about to leave; from then on it is the receiver's. It reports
// whether the link lasts.
func (k *redisLink) begin(f *Flight) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken {
		return false
	}
	k.flight = f
	if k.armed.IsZero() || f.until.Before(k.armed) {
		k.armed = f.until
		_ = k.conn.SetReadDeadline(k.armed)
	}
	return true
}

// Receive is of Link.
func (k *redisLink) Receive() (f *Flight, err error) {
	k.came = 0
	err = contained.Run(func() error {
		if err := k.in.Wait(); err != nil {
			return err
		}
		if f = k.underWay(); f == nil {
			return errUnasked
		}
		return k.read(f)
	})
	if err != nil {
		f = k.end()
	}
	if f != nil {
		k.transport.learn(f, err)
	}
	return f, err
}

// read reads the answers to a batch. What it does not come to stays without a reply.
func (k *redisLink) read(f *Flight) error {
	k.in.Begin()
	defer k.in.End()
	for i, o := range f.ops {
		first := f.releases.first(i)
		if !first && f.releases.has(i) {
			continue
		}
		said, err := k.in.Value()
		switch {
		case err != nil:
			return err
		case first:
			f.releases.decode(said, f.replies)
			k.transport.heed(f.replies[i].Err)
		default:
			f.replies[i] = decode(o.form(f.old), said)
		}
	}
	if err := f.check.Read(k.in, f.sent); err != nil {
		return err
	}
	if k.in.Buffered() {
		return errUnasked
	}
	if err := unknown(f.replies); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flight = nil
	return nil
}

// unknown is the error of an answer that cannot be understood: nothing after it on the same
// connection is to be trusted.
func unknown(replies []reply) error {
	for i := range replies {
		if replies[i].State == register.Unknown {
			return replies[i].Err
		}
	}
	return nil
}

func (k *redisLink) underWay() *Flight {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.flight
}

// end has nothing sent any more, and returns what was under way.
func (k *redisLink) end() *Flight {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = true
	f := k.flight
	k.flight = nil
	return f
}

// Close is of Link.
func (k *redisLink) Close() {
	k.mu.Lock()
	k.broken = true
	k.mu.Unlock()
	_ = socketOf(k.conn).Close() // the socket itself: TLS would say farewell
	k.transport.forget(k)
}

// patientConn reads until the deadline of what is under way, whatever deadline is set.
type patientConn struct{ *redisLink }

// Read is of io.Reader.
func (c patientConn) Read(p []byte) (int, error) {
	for {
		n, err := c.conn.Read(p)
		c.came += n
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.waitsOn(time.Now()) {
			return n, err
		}
	}
}

// goesOn has a batch waited for anew where the master is in the midst of answering it. It reports
// whether it is.
func (k *redisLink) goesOn(now time.Time) bool {
	if k.came < steady {
		return false
	}
	k.came = 0
	k.flight.until = now.Add(k.transport.timeout)
	return true
}

// steady is how many bytes come at the least, within the time that an answer is waited for, from a
// master that is well and has much to answer.
const steady = 1 << 20

// waitsOn sets the deadline of what is under way now, or none. It reports whether that is
// still to come.
func (k *redisLink) waitsOn(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = time.Time{}
	if k.flight != nil {
		if !k.flight.excuse(now, k.transport.timeout) && !k.goesOn(now) {
			return false
		}
		k.armed = k.flight.until
	}
	_ = k.conn.SetReadDeadline(k.armed)
	return true
}
