package messages

import (
	"net"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/pushconn"
)

const (
	// heartbeat is the time between two regular PINGs to each master. Each PING is a flush: the
	// master's reply follows all messages that the master received before the PING.
	heartbeat = time.Second
	// silenceLimit is the longest time that a master may be silent while a reply is pending. It is
	// long, because an unbroken connection matters more than noticing soon that a master is frozen:
	// the other masters deliver all messages.
	silenceLimit = 5 * time.Second
)

// limits returns the limits for reading one message of a master.
func limits() resp.Limits {
	return resp.Limits{Line: 16 << 10, Bulk: MaxSize + headSize, Elements: 64, Depth: 4, Total: MaxSize + 64<<10}
}

// connection receives the messages that a master delivers. A signal on WriteSignal makes the writer
// request a flush.
type connection struct {
	*pushconn.Connection

	mu sync.Mutex
	// lastRequested, lastSent and lastAnswered are the numbers of the last flushes that were
	// requested, sent and answered.
	lastRequested, lastSent, lastAnswered uint64
}

func newConnection(conn net.Conn) *connection {
	return &connection{Connection: pushconn.NewConnection(conn, limits())}
}

// subscribe makes the master deliver the messages on a channel.
func (l *connection) subscribe(channel string) error {
	err := pushconn.Greet(l, l.In, silenceLimit, resp.Push, "SUBSCRIBE", channel)
	if err == nil {
		l.extendDeadline()
	}
	return err
}

// requestFlush makes the writer request a flush.
func (l *connection) requestFlush(flush uint64) {
	l.mu.Lock()
	l.lastRequested = flush
	l.mu.Unlock()
	l.SignalWriter()
}

// write requests flushes until the connection ends.
func (l *connection) write() {
	defer l.End()
	for {
		select {
		case <-l.EndSignal:
			return
		case <-l.WriteSignal:
		}
		l.mu.Lock()
		l.lastSent = l.lastRequested
		flush := strconv.FormatUint(l.lastSent, 10)
		l.mu.Unlock()
		l.extendDeadline()
		_ = l.SetWriteDeadline(time.Now().Add(silenceLimit))
		if _, err := l.Write(resp.AppendWords(nil, "PING", flush)); err != nil {
			return
		}
	}
}

// extendDeadline extends the read deadline. If no reply is pending, it doubles the extension,
// because the proxy sends no flush while another master has not answered.
func (l *connection) extendDeadline() {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := silenceLimit
	if l.lastSent == l.lastAnswered {
		wait += silenceLimit
	}
	_ = l.SetReadDeadline(time.Now().Add(wait))
}

// read processes messages of the master until the connection ends. It calls receive for each
// message, and onFlushed when all messages from before a flush have arrived.
func (l *connection) read(channel string, receive func(Message) error, onFlushed func(uint64)) error {
	for {
		raw, kind, err := pushconn.ReadNext(l.In)
		if err != nil {
			return err
		}
		if kind == resp.Push {
			err = l.handlePush(raw, channel, receive)
		} else {
			err = l.handleAnswer(raw, onFlushed)
		}
		if err != nil {
			return err
		}
		l.extendDeadline()
	}
}

// handlePush processes a message. It ignores texts that no proxy has published, because clients of
// the masters may also publish on the channel.
func (l *connection) handlePush(raw any, channel string, receive func(Message) error) error {
	parts, _ := raw.([]any)
	if len(parts) != 3 || parts[0] != any("message") || parts[1] != any(channel) {
		return pushconn.ErrUnsolicited
	}
	text, ok := parts[2].(string)
	if !ok {
		return pushconn.ErrUnsolicited
	}
	m, err := decode(text)
	if err != nil {
		return nil
	}
	return receive(m)
}

// handleAnswer processes the reply to a PING.
func (l *connection) handleAnswer(raw any, onFlushed func(uint64)) error {
	if refusal, ok := raw.(resp.Error); ok {
		return refusal
	}
	text, _ := raw.(string)
	flush, err := strconv.ParseUint(text, 10, 64)
	l.mu.Lock()
	if err != nil || flush <= l.lastAnswered || flush > l.lastSent {
		l.mu.Unlock()
		return pushconn.ErrUnexpectedReply
	}
	l.lastAnswered = flush
	l.mu.Unlock()
	onFlushed(flush)
	return nil
}
