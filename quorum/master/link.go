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

// linkLimits returns the limits for the replies to one batch. Replies are not nested, and proxies
// only write values of limited size. If clients together request more than the shared allowance,
// their requests fail, but the link does not.
func linkLimits(shared *resp.Allowance) resp.Limits {
	return resp.Limits{Line: 64 << 10, Bulk: 32 << 20, Elements: 1 << 17, Depth: 1, Total: maxReplyBytes, SharedAllowance: shared,
		Skip: 256}
}

// maxReplyBytes limits, in bytes, the replies to one batch, and all replies that are being read
// from a master over all links.
const maxReplyBytes = 64 << 20

// maxKeptBuffer limits the buffer that a link keeps for the next batch, in bytes.
const maxKeptBuffer = 64 << 10

// errUnsolicited is the cause if a master sends a reply without a request.
var errUnsolicited = errors.New("it sent a reply without a request")

// redisLink implements Link over a connection that go-redis has dialled and logged in. From then on
// this package reads and writes the connection, with two system calls for a batch, and without a
// pool or boxing.
//
// One goroutine receives. It stays in its read while no batch is in flight, so it notices the end
// of the connection. A sender sets the read deadline only if no deadline or a later deadline is
// set. If the deadline expires before the deadline of the batch in flight, the reader sets it
// again.
type redisLink struct {
	transport *redisTransport
	conn      net.Conn
	in        *resp.Reader

	// sendMu serializes calls of Send. out is the buffer for the batch, and writeDeadline the
	// current write deadline.
	sendMu        sync.Mutex
	out           []byte
	writeDeadline time.Time

	mu sync.Mutex
	// inFlight is the batch in flight, or nil.
	inFlight *Batch
	// readDeadline is the current read deadline, or zero.
	readDeadline time.Time
	// broken is set once the link may send no further batch.
	broken bool
	// bytesRead counts the bytes received since the last extension of the wait for the current
	// batch. Only the receiver uses it.
	bytesRead int
}

func newRedisLink(t *redisTransport, conn net.Conn) *redisLink {
	k := &redisLink{transport: t, conn: conn}
	k.in = resp.NewReader(deadlineConn{k}, linkLimits(t.replyMemory))
	return k
}

// Send implements Link.
func (k *redisLink) Send(f *Batch) bool {
	k.sendMu.Lock()
	defer k.sendMu.Unlock()
	f.beforeRedis7 = k.transport.beforeRedis7.Load()
	k.out = k.out[:0]
	k.appendOps(f)
	k.out = f.check.AppendTo(k.out)
	f.sentAt = time.Now()
	f.deadline, f.extended = f.sentAt.Add(k.transport.timeouts.current()), false
	if k.writeDeadline.Before(f.deadline) {
		k.writeDeadline = f.deadline.Add(time.Second)
		_ = k.conn.SetWriteDeadline(k.writeDeadline)
	}
	if !k.setInFlight(f) {
		return false
	}
	if _, err := k.conn.Write(k.out); err != nil {
		k.Close() // Closing the link makes Receive return an error.
	}
	if cap(k.out) > maxKeptBuffer {
		k.out = nil
	}
	return true
}

// appendOps encodes the operations of a batch.
func (k *redisLink) appendOps(f *Batch) {
	if !k.transport.noMultiKeyScripts.Load() {
		f.releases.collect(f.ops)
	}
	for i, o := range f.ops {
		switch {
		case f.releases.first(i):
			k.out = f.releases.removals.AppendTo(k.out, k.transport.scriptMissing.Swap(false))
		case !f.releases.has(i):
			k.out = o.appendTo(k.out, f.beforeRedis7)
		}
	}
}

// setInFlight registers a batch that is about to be sent. The receiver owns it from then on.
// setInFlight reports whether the link is usable.
func (k *redisLink) setInFlight(f *Batch) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken {
		return false
	}
	k.inFlight = f
	if k.readDeadline.IsZero() || f.deadline.Before(k.readDeadline) {
		k.readDeadline = f.deadline
		_ = k.conn.SetReadDeadline(k.readDeadline)
	}
	return true
}

// Receive implements Link.
func (k *redisLink) Receive() (f *Batch, err error) {
	k.bytesRead = 0
	err = contained.Run(func() error {
		if err := k.in.Wait(); err != nil {
			return err
		}
		if f = k.currentBatch(); f == nil {
			return errUnsolicited
		}
		return k.read(f)
	})
	if err != nil {
		f = k.markBroken()
	}
	if f != nil {
		k.transport.recordTime(f, err)
	}
	return f, err
}

// read reads the replies to a batch. If it returns an error, the remaining ops have no reply.
func (k *redisLink) read(f *Batch) error {
	k.in.Begin()
	defer k.in.End()
	for i, o := range f.ops {
		first := f.releases.first(i)
		if !first && f.releases.has(i) {
			continue
		}
		raw, err := k.in.ReadValue()
		switch {
		case err != nil:
			return err
		case first:
			f.releases.decode(raw, f.replies)
			k.transport.noteScriptError(f.replies[i].Err)
		default:
			f.replies[i] = decode(o.form(f.beforeRedis7), raw)
		}
	}
	if err := f.check.Read(k.in, f.sentAt); err != nil {
		return err
	}
	if k.in.Buffered() {
		return errUnsolicited
	}
	if err := decodeError(f.replies); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inFlight = nil
	return nil
}

// decodeError returns the error of a reply that could not be decoded, or nil. After such a reply,
// later replies on the same connection cannot be trusted.
func decodeError(replies []reply) error {
	for i := range replies {
		if replies[i].State == register.Unknown {
			return replies[i].Err
		}
	}
	return nil
}

func (k *redisLink) currentBatch() *Batch {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.inFlight
}

// markBroken prevents further sends, and returns the batch in flight.
func (k *redisLink) markBroken() *Batch {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = true
	f := k.inFlight
	k.inFlight = nil
	return f
}

// Close implements Link.
func (k *redisLink) Close() {
	k.mu.Lock()
	k.broken = true
	k.mu.Unlock()
	_ = socketOf(k.conn).Close() // the socket itself: TLS would send a close message first
	k.transport.removeLink(k)
}

// deadlineConn reads until the deadline of the batch in flight, even if an earlier deadline is set.
type deadlineConn struct{ *redisLink }

// Read implements io.Reader.
func (c deadlineConn) Read(p []byte) (int, error) {
	for {
		n, err := c.conn.Read(p)
		c.bytesRead += n
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.rearm(time.Now()) {
			return n, err
		}
	}
}

// extendWhileReading extends the deadline of the batch in flight if the master keeps sending
// replies. It reports whether it extended the deadline.
func (k *redisLink) extendWhileReading(now time.Time) bool {
	if k.bytesRead < minProgress {
		return false
	}
	k.bytesRead = 0
	k.inFlight.deadline = now.Add(k.transport.timeout)
	return true
}

// minProgress is the minimum number of bytes that a healthy master with a long reply sends within
// the time limit for a reply.
const minProgress = 1 << 20

// rearm sets the read deadline to the deadline of the batch in flight, or to none. It reports
// whether to continue reading.
func (k *redisLink) rearm(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readDeadline = time.Time{}
	if k.inFlight != nil {
		if !k.inFlight.extendIfLate(now, k.transport.timeout) && !k.extendWhileReading(now) {
			return false
		}
		k.readDeadline = k.inFlight.deadline
	}
	_ = k.conn.SetReadDeadline(k.readDeadline)
	return true
}
