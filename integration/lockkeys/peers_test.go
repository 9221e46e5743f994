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
	conn, err := net.DialTimeout("tcp", addr, kit.WaitLimit)
	if err != nil {
		return nil, err
	}
	p := &peer{conn: conn}
	p.reader = bufio.NewReader(io.TeeReader(conn, &p.raw))
	return p, nil
}

// send writes one command.
func (p *peer) send(words []string) error {
	if err := p.conn.SetDeadline(time.Now().Add(kit.WaitLimit)); err != nil {
		return err
	}
	_, err := p.conn.Write(redistest.AppendCommand(nil, words...))
	return err
}

// peerReply is one reply, as bytes and as a value.
type peerReply struct {
	raw   string
	value any
}

// receive reads one reply, and fails if more data follows it.
func (p *peer) receive() (peerReply, error) {
	p.raw.Reset()
	value, err := redistest.ReadReply(p.reader)
	if err == nil && p.reader.Buffered() > 0 {
		err = fmt.Errorf("more than one reply: %q", p.raw.String())
	}
	return peerReply{p.raw.String(), value}, err
}

// pair holds connections to the proxy and to a single Redis, for the same conversation.
type pair struct {
	addrs   [2]string // addresses of the proxy and of the single Redis
	peers   [2]*peer
	resp    string // protocol, "2" or "3"
	history [][]string
	keys    []string // the two lock keys

	// observer also reads the proxy's keys. It is nil if no command may be refused.
	observer *redistest.Client
	// refusableCount is the number of steps that may be refused, refusedCount the number of steps
	// that were refused.
	refusableCount, refusedCount int
	lateCount                    int // number of late replies, after which new keys are used

	bothRedis   bool   // the first address is a single Redis as well
	beforeGroup func() // called before each group of commands
}

// startPair connects to the proxy and to the single Redis.
func startPair(t *testing.T, proxy, redis, resp string) *pair {
	t.Helper()
	p := &pair{addrs: [2]string{proxy, redis}, resp: resp, keys: lockKeyNames()}
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
	for _, p := range p.peers {
		if p != nil {
			_ = p.conn.Close()
		}
	}
}

// reset starts again with new connections and without keys.
func (p *pair) reset() error {
	p.close()
	p.history = nil
	if err := p.connect(); err != nil {
		return err
	}
	for _, db := range []string{"1", "0"} {
		for _, words := range [][]string{{"SELECT", db}, append([]string{"DEL"}, p.keys...)} {
			for isKnown := false; !isKnown; {
				replies, err := p.sendToBoth(step{words: words})
				if err != nil {
					return err
				}
				isKnown = !kit.IsLateText(replies[0].raw)
			}
		}
	}
	return nil
}

// step is one command of a conversation.
type step struct {
	words []string
	// redisWords is the equivalent command for the single Redis, if Redis lacks the command; nil:
	// the same command.
	redisWords []string
	// hasTimes is set if the reply contains times, which may differ a little; see toleranceMillis.
	hasTimes bool
	// refusable is set if the proxy may refuse the command because it uses both keys.
	refusable bool
}

// sendToBoth sends a command to both servers at the same time.
func (p *pair) sendToBoth(s step) (replies [2]peerReply, err error) {
	p.history = append(p.history, s.words)
	words := [2][]string{s.words, s.words}
	if s.redisWords != nil {
		words[1] = s.redisWords
		if p.bothRedis {
			words[0] = s.redisWords
		}
	}
	for i, peer := range p.peers {
		if err := peer.send(words[i]); err != nil {
			return replies, fmt.Errorf("%q to %s: %w", words[i], p.addrs[i], err)
		}
	}
	for i, peer := range p.peers {
		if replies[i], err = peer.receive(); err != nil {
			return replies, fmt.Errorf("%q to %s: %w", words[i], p.addrs[i], err)
		}
	}
	return replies, nil
}

// lastCommands returns the last n commands as text for an error message.
func (p *pair) lastCommands(n int) string {
	var text bytes.Buffer
	for _, words := range p.history[max(0, len(p.history)-n):] {
		fmt.Fprintf(&text, "  %q\n", words)
	}
	return text.String()
}

const (
	// Every lease of a conversation is at least minSeconds, so that sameValues takes no small
	// number for a remaining time. Leases differ by much more than the tolerance.
	minSeconds, toleranceSeconds = 100, 3
	minMillis, toleranceMillis   = 100_000, 3000
)

// sameReply reports whether two replies are the same, or, if they contain times, almost the same.
func sameReply(proxyReply, redisReply peerReply, hasTimes bool) bool {
	return proxyReply.raw == redisReply.raw || hasTimes && sameValues(proxyReply.value, redisReply.value)
}

func sameValues(proxyValue, redisValue any) bool {
	if list, isList := proxyValue.([]any); isList {
		redisList, isList := redisValue.([]any)
		return isList && slices.EqualFunc(list, redisList, sameValues)
	}
	a, isNumber := proxyValue.(int64)
	b, areNumbers := redisValue.(int64)
	if !isNumber || !areNumbers {
		return proxyValue == redisValue
	}
	difference := max(a, b) - min(a, b)
	switch lower := min(a, b); {
	case lower >= minMillis-toleranceMillis:
		return difference <= toleranceMillis
	case lower >= minSeconds-toleranceSeconds:
		return difference <= toleranceSeconds
	default:
		return difference == 0
	}
}
