//go:build integration

package lockkeys

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// peer is a connection that records the bytes of each reply.
type peer struct {
	conn   net.Conn
	reader *bufio.Reader
	raw    bytes.Buffer
}

func dialPeer(addr string) (*peer, error) {
	conn, err := net.DialTimeout("tcp", addr, kit.Patience)
	if err != nil {
		return nil, err
	}
	p := &peer{conn: conn}
	p.reader = bufio.NewReader(io.TeeReader(conn, &p.raw))
	return p, nil
}

// send writes one command.
func (p *peer) send(words []string) error {
	if err := p.conn.SetDeadline(time.Now().Add(kit.Patience)); err != nil {
		return err
	}
	_, err := p.conn.Write(redistest.AppendCommand(nil, words...))
	return err
}

// answer is one reply, as bytes and as a value.
type answer struct {
	raw   string
	value any
}

// receive reads one reply, and fails if more data follows it.
func (p *peer) receive() (answer, error) {
	p.raw.Reset()
	value, err := redistest.ReadReply(p.reader)
	if err == nil && p.reader.Buffered() > 0 {
		err = fmt.Errorf("more than one reply: %q", p.raw.String())
	}
	return answer{p.raw.String(), value}, err
}

// pair runs the same conversation with the proxy and with a single Redis.
type pair struct {
	addrs   [2]string // of the proxy and of the single Redis
	peers   [2]*peer
	resp    string // protocol, "2" or "3"
	history [][]string

	looker             *redistest.Client // also reads the proxy's keys; nil if no command may be refused
	refusable, refused int               // number of steps that may be refused, and that were refused

	alwaysTheirs bool   // the first address is a single Redis as well
	between      func() // called between commands
}

// startPair connects to the proxy and to the single Redis.
func startPair(t *testing.T, proxy, redis, resp string) *pair {
	t.Helper()
	p := &pair{addrs: [2]string{proxy, redis}, resp: resp}
	kit.Must(t, p.connect())
	t.Cleanup(p.close)
	return p
}

func (p *pair) connect() (err error) {
	for i, addr := range p.addrs {
		if p.peers[i], err = dialPeer(addr); err != nil {
			return err
		}
		if err = p.peers[i].send([]string{"HELLO", p.resp}); err != nil {
			return err
		}
		if _, err = p.peers[i].receive(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) close() {
	for _, one := range p.peers {
		if one != nil {
			_ = one.conn.Close()
		}
	}
}

// afresh starts again with new connections and without keys.
func (p *pair) afresh(keys []string) error {
	p.close()
	p.history = nil
	if err := p.connect(); err != nil {
		return err
	}
	for _, db := range []string{"1", "0"} {
		for _, words := range [][]string{{"SELECT", db}, append([]string{"DEL"}, keys...)} {
			if _, err := p.ask(step{words: words}); err != nil {
				return err
			}
		}
	}
	return nil
}

// step is one command of a conversation.
type step struct {
	words []string
	// theirs is the command for the single Redis if it lacks the proxy's; nil: the same command.
	theirs []string
	// times is set if the reply contains times, which may differ by milliseconds.
	times bool
	// refusable is set if the proxy may refuse the command because it uses both keys.
	refusable bool
}

// ask sends a command to both servers at the same time.
func (p *pair) ask(s step) (answers [2]answer, err error) {
	p.history = append(p.history, s.words)
	words := [2][]string{s.words, s.words}
	if s.theirs != nil {
		words[1] = s.theirs
		if p.alwaysTheirs {
			words[0] = s.theirs
		}
	}
	for i, one := range p.peers {
		if err := one.send(words[i]); err != nil {
			return answers, fmt.Errorf("%q to %s: %w", words[i], p.addrs[i], err)
		}
	}
	for i, one := range p.peers {
		if answers[i], err = one.receive(); err != nil {
			return answers, fmt.Errorf("%q to %s: %w", words[i], p.addrs[i], err)
		}
	}
	return answers, nil
}

// recent returns the last commands, for a message.
func (p *pair) recent(n int) string {
	var text bytes.Buffer
	for _, words := range p.history[max(0, len(p.history)-n):] {
		fmt.Fprintf(&text, "  %q\n", words)
	}
	return text.String()
}

const (
	// Every lease of a conversation is so long, in seconds and in milliseconds, that it differs
	// from all other numbers. Leases differ by much more than the tolerance.
	leastSeconds, secondsApart = 100, 3
	leastMillis, millisApart   = 100_000, 3000
)

// alike reports whether two replies are the same, or, if they contain times, almost the same.
func alike(ours, theirs answer, times bool) bool {
	return ours.raw == theirs.raw || times && alikeValues(ours.value, theirs.value)
}

func alikeValues(ours, theirs any) bool {
	if list, isList := ours.([]any); isList {
		other, isList := theirs.([]any)
		return isList && slices.EqualFunc(list, other, alikeValues)
	}
	a, isNumber := ours.(int64)
	b, areNumbers := theirs.(int64)
	if !isNumber || !areNumbers {
		return ours == theirs
	}
	apart := max(a, b) - min(a, b)
	switch least := min(a, b); {
	case least >= leastMillis-millisApart:
		return apart <= millisApart
	case least >= leastSeconds-secondsApart:
		return apart <= secondsApart
	default:
		return apart == 0
	}
}
