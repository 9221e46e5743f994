package watch

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/pushconn"
)

const (
	// heartbeat is the time between two checks whether a connection was silent. On a silent
	// connection the writer sends a PING.
	heartbeat = time.Second
	// headSize is the number of bytes that a read requests of a value. They show the form of its
	// cell, and whether HasExpiries is true.
	headSize = 512
)

// limits returns the limits for one message of a master.
func limits() resp.Limits {
	return resp.Limits{Line: 16 << 10, Bulk: 2 * maxKeyLength, Elements: 1 << 12, Depth: 4, Total: 4 << 20}
}

// connection is the connection of a watch to its master.
type connection struct {
	*pushconn.Connection
	watch *watch

	mu sync.Mutex
	// dueReads holds the reads that are not sent yet.
	dueReads []readRequest
	// pendingRequests holds the requests that were sent, in order.
	pendingRequests []request
	// active is set if the master has sent a message since the last heartbeat.
	active bool
}

// readRequest describes a read of a key. If value is not empty, the request first writes it to the
// key, with the expiry ttl.
type readRequest struct {
	key, value string
	ttl        time.Duration
}

// request is a read of a key, or a PING.
type request struct {
	key    string
	isPing bool
	// expectsSet is set until the reply to the SET of a read arrives, if the read has a SET.
	// refused is set if the master refused the SET.
	expectsSet, refused bool
	// gotTTL is set after the first of the two replies to a read, and ttl is that reply. stale is
	// set if a change was reported between the two.
	gotTTL, stale bool
	ttl           int64
}

func newConnection(conn net.Conn, w *watch) *connection {
	return &connection{Connection: pushconn.NewConnection(conn, limits()), watch: w}
}

// timeout returns the time limit for a reply.
func (l *connection) timeout() time.Duration { return l.watch.watcher.opts.ReplyTimeout }

// greet makes the master report changes of keys that are read on this connection.
func (l *connection) greet() error {
	err := pushconn.Greet(l, l.In, l.timeout(), resp.Status, "CLIENT", "TRACKING", "ON")
	if err == nil {
		l.extendDeadline()
	}
	return err
}

// ask queues a read, which the writer sends. Callers hold watch.mu.
func (l *connection) ask(r readRequest) {
	l.mu.Lock()
	l.dueReads = append(l.dueReads, r)
	l.mu.Unlock()
	l.SignalWriter()
}

// write sends requests until the connection ends.
func (l *connection) write() {
	defer l.End()
	ticker := time.Tick(heartbeat)
	for {
		var out []byte
		select {
		case <-l.EndSignal:
			return
		case <-l.WriteSignal:
			out = l.encodeReads()
		case now := <-ticker:
			if l.watch.isIdle(now) {
				return
			}
			out = l.encodePing()
		}
		if len(out) == 0 {
			continue
		}
		_ = l.SetWriteDeadline(time.Now().Add(l.timeout()))
		if _, err := l.Write(out); err != nil {
			return
		}
	}
}

// encodeReads encodes the due reads.
func (l *connection) encodeReads() (out []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.dueReads {
		if r.value != "" {
			out = resp.AppendWords(out, "SET", r.key, r.value, "PX", strconv.FormatInt(r.ttl.Milliseconds(), 10))
		}
		out = resp.AppendWords(out, "PTTL", r.key)
		out = resp.AppendWords(out, "GETRANGE", r.key, "0", strconv.Itoa(headSize-1))
		l.addPending(request{key: r.key, expectsSet: r.value != ""})
	}
	clear(l.dueReads)
	l.dueReads = l.dueReads[:0]
	return out
}

// encodePing encodes a PING, unless the master was active since the last heartbeat or has a request
// to answer.
func (l *connection) encodePing() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	active := l.active
	l.active = false
	if active || len(l.pendingRequests) > 0 {
		return nil
	}
	l.addPending(request{isPing: true})
	return resp.AppendWords(nil, "PING")
}

// addPending registers a request that is sent now. Callers hold l.mu.
func (l *connection) addPending(q request) {
	if len(l.pendingRequests) == 0 {
		_ = l.SetReadDeadline(time.Now().Add(l.timeout()))
	}
	l.pendingRequests = append(l.pendingRequests, q)
}

// extendDeadline extends the read deadline after a message of the master.
func (l *connection) extendDeadline() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = true
	wait := l.timeout()
	if len(l.pendingRequests) == 0 {
		wait += 3 * heartbeat // a heartbeat sends no PING if the master was active
	}
	_ = l.SetReadDeadline(time.Now().Add(wait))
}

// read processes messages of the master until the connection ends.
func (l *connection) read() error {
	for {
		raw, kind, err := pushconn.ReadNext(l.In)
		switch {
		case err != nil:
			return err
		case kind == resp.Push:
			err = l.handlePush(raw)
		default:
			err = l.handleAnswer(raw)
		}
		if err != nil {
			return err
		}
		l.extendDeadline()
	}
}

// handlePush processes the report that some keys, or all keys, have changed.
func (l *connection) handlePush(raw any) error {
	parts, _ := raw.([]any)
	if len(parts) != 2 || parts[0] != any("invalidate") {
		return pushconn.ErrUnsolicited
	}
	if parts[1] == nil {
		l.markStale(func(string) bool { return true })
		l.watch.updateAll(observation{state: stateChanged})
		return nil
	}
	keys, ok := parts[1].([]any)
	if !ok {
		return pushconn.ErrUnsolicited
	}
	for _, item := range keys {
		key, ok := item.(string)
		if !ok {
			return pushconn.ErrUnsolicited
		}
		l.markStale(func(pendingKey string) bool { return pendingKey == key })
		l.watch.update(key, observation{state: stateChanged})
	}
	return nil
}

// markStale records that a key changed between the two replies to a read of it.
func (l *connection) markStale(matches func(key string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pendingRequests) > 0 && l.pendingRequests[0].gotTTL && matches(l.pendingRequests[0].key) {
		l.pendingRequests[0].stale = true
	}
}

// handleAnswer processes a reply to the oldest request.
func (l *connection) handleAnswer(raw any) error {
	q, complete, err := l.completeOldestRequest(raw)
	if err != nil || !complete || q.isPing {
		return err
	}
	s := observation{state: stateChanged, stale: true}
	if !q.stale {
		if s, err = l.watch.watcher.opts.observationOf(q.ttl, raw, time.Now()); err != nil {
			return err
		}
	}
	if q.refused {
		s = observation{state: stateUnknown}
	}
	l.watch.update(q.key, s)
	return nil
}

// completeOldestRequest processes a reply to the oldest request. When the request has all its
// replies, completeOldestRequest removes and returns it, and complete is set.
func (l *connection) completeOldestRequest(raw any) (q request, complete bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pendingRequests) == 0 {
		return q, false, pushconn.ErrUnsolicited
	}
	oldest := &l.pendingRequests[0]
	if oldest.expectsSet {
		oldest.expectsSet, oldest.refused = false, raw != any("OK")
		if _, refusal := raw.(resp.Error); oldest.refused && !refusal {
			return *oldest, false, replyError(raw)
		}
		return *oldest, false, nil
	}
	if !oldest.isPing && !oldest.gotTTL {
		oldest.gotTTL = true
		oldest.ttl, err = intReply(raw)
		return *oldest, false, err
	}
	if oldest.isPing && raw != any("PONG") {
		return *oldest, false, replyError(raw)
	}
	q = *oldest
	l.pendingRequests = l.pendingRequests[1:]
	return q, true, nil
}

func intReply(raw any) (int64, error) {
	if n, ok := raw.(int64); ok {
		return n, nil
	}
	return 0, replyError(raw)
}

// replyError returns the error for an unusable reply: the error reply of the master, or an error
// that quotes the reply.
func replyError(raw any) error {
	if refusal, ok := raw.(resp.Error); ok {
		return refusal
	}
	return fmt.Errorf("%w: %.32q", pushconn.ErrUnexpectedReply, fmt.Sprint(raw))
}

// observationOf returns the observation from the two replies to a read: pttl, and raw with the head
// of the value.
func (o Options) observationOf(pttl int64, raw any, now time.Time) (observation, error) {
	text, ok := raw.(string)
	c := cell.Parse(text)
	hasExpiries := ok && o.HasExpiries != nil && o.HasExpiries(c.Value.Text)
	switch {
	case !ok && !isForeignType(raw):
		return observation{}, replyError(raw)
	case pttl == pttlAbsent:
		return observation{state: stateFree}, nil
	case ok && c.Form == cell.Register && !c.Value.Present: // a ballot removed the value
		return observation{state: stateFree}, nil
	case pttl < 0:
		return observation{state: stateHeld, hasExpiries: hasExpiries}, nil
	}
	expiry := now.Add(time.Duration(min(pttl, maxPTTL))*time.Millisecond + time.Millisecond)
	return observation{state: stateHeld, expiry: expiry, hasExpiries: hasExpiries}, nil
}

const (
	// pttlAbsent is the PTTL of a key that does not exist.
	pttlAbsent = -2
	// maxPTTL limits a PTTL, in milliseconds: a year.
	maxPTTL = int64(365 * 24 * time.Hour / time.Millisecond)
)

// isForeignType reports whether the value is not a string. Then a client that is connected to the
// master directly wrote it.
func isForeignType(raw any) bool {
	refusal, ok := raw.(resp.Error)
	return ok && len(refusal) > 10 && refusal[:10] == "WRONGTYPE "
}
