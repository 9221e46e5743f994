package messages

import (
	"net"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/feed"
)

const (
	// beat is how often each master is asked for a sign of life, which is a flush.
	beat = time.Second
	// patience is how long a master may be silent meanwhile. It is long: to hear it without a break
	// matters more than to notice soon that it is frozen, for the others bring all messages.
	patience = 5 * time.Second
)

// limits bound what a master sends at once.
func limits() resp.Limits {
	return resp.Limits{Line: 16 << 10, Bulk: MaxSize + headSize, Elements: 64, Depth: 4, Total: MaxSize + 64<<10}
}

// line is a connection on which a master brings messages. What is due is a flush to be asked for.
type line struct {
	*feed.Line

	mu sync.Mutex
	// wanted is the last flush that is to be asked for, asked what was asked for, answered what was
	// answered.
	wanted, asked, answered uint64
}

func newLine(conn net.Conn) *line { return &line{Line: feed.NewLine(conn, limits())} }

// subscribe has the master bring what is published on a channel.
func (l *line) subscribe(channel string) error {
	err := feed.Greet(l, l.In, patience, resp.Push, "SUBSCRIBE", channel)
	if err == nil {
		l.hears()
	}
	return err
}

// want has the master be asked for a flush.
func (l *line) want(flush uint64) {
	l.mu.Lock()
	l.wanted = flush
	l.mu.Unlock()
	l.Prompt()
}

// write asks for flushes until the connection ends.
func (l *line) write() {
	defer l.End()
	for {
		select {
		case <-l.Ended:
			return
		case <-l.Due:
		}
		l.mu.Lock()
		l.asked = l.wanted
		flush := strconv.FormatUint(l.asked, 10)
		l.mu.Unlock()
		l.hears()
		_ = l.SetWriteDeadline(time.Now().Add(patience))
		if _, err := l.Write(resp.AppendWords(nil, "PING", flush)); err != nil {
			return
		}
	}
}

// hears has the connection last for another while: for longer where nothing is asked, as none is
// while another master is waited for.
func (l *line) hears() {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := patience
	if l.asked == l.answered {
		wait += patience
	}
	_ = l.SetReadDeadline(time.Now().Add(wait))
}

// read takes what the master brings until the connection ends: messages, and that all is here from
// before a flush.
func (l *line) read(channel string, brought func(Message) error, flushed func(uint64)) error {
	for {
		said, kind, err := feed.Next(l.In)
		if err != nil {
			return err
		}
		if kind == resp.Push {
			err = l.push(said, channel, brought)
		} else {
			err = l.answer(said, flushed)
		}
		if err != nil {
			return err
		}
		l.hears()
	}
}

// push takes a message. What no proxy has published is nobody's: others may publish on the channel,
// too.
func (l *line) push(said any, channel string, brought func(Message) error) error {
	parts, _ := said.([]any)
	if len(parts) != 3 || parts[0] != any("message") || parts[1] != any(channel) {
		return feed.ErrUnasked
	}
	text, ok := parts[2].(string)
	if !ok {
		return feed.ErrUnasked
	}
	m, err := decode(text)
	if err != nil {
		return nil
	}
	return brought(m)
}

// answer takes the answer to a PING.
func (l *line) answer(said any, flushed func(uint64)) error {
	if refusal, ok := said.(resp.Error); ok {
		return refusal
	}
	text, _ := said.(string)
	flush, err := strconv.ParseUint(text, 10, 64)
	l.mu.Lock()
	if err != nil || flush <= l.answered || flush > l.asked {
		l.mu.Unlock()
		return feed.ErrAnswer
	}
	l.answered = flush
	l.mu.Unlock()
	flushed(flush)
	return nil
}
