//go:build integration

package chaos

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// shared is the value with which all stallers lock. So only the clients know which of them
	// holds a lock.
	shared = "1"
	// stallLease is the lease of stallers' locks.
	stallLease = 500 * time.Millisecond
	// largeOwn is a lock key, and largeOther a key of the upstream, whose values are large.
	largeOwn, largeOther = "lock:large", "large"
)

// staller is a client that sends a lock command followed by commands with replies larger than all
// buffers. It reads nothing and disconnects when its lease may have expired, or it reads only the
// reply to the lock command. It releases nothing.
type staller struct {
	ledger *ledger
	addrs  []string
	keys   []string
	number int
	random *rand.Rand
}

// startLarge sets the large values.
func startLarge(t *testing.T, c *cluster) {
	t.Helper()
	for key, size := range map[string]int{largeOwn: 128 << 10, largeOther: 1 << 20} {
		_, err := ask(c.proxies[0].addr, "SET", key, string(bytes.Repeat([]byte("v"), size)))
		kit.Must(t, err)
	}
}

// pipeline returns a lock command followed by commands with 8 MB of replies.
func (s *staller) pipeline(key string) []byte {
	sent := redistest.AppendCommand(nil, "SET", key, shared, "NX", "PX", millis(stallLease))
	if s.random.IntN(2) == 0 {
		return redistest.AppendCommand(sent, append([]string{"MGET"}, slices.Repeat([]string{largeOwn}, 64)...)...)
	}
	for range 8 {
		sent = redistest.AppendCommand(sent, "GET", largeOther)
	}
	return sent
}

// turn uses one such connection. Commands that are lost with it count as unanswered.
func (s *staller) turn() {
	key, token := s.keys[s.random.IntN(len(s.keys))], s.ledger.newToken(s.number)
	client, err := redistest.Dial(s.addrs[s.random.IntN(len(s.addrs))], patience)
	if err != nil {
		return
	}
	_ = client.Narrow() // fails on a closed connection only
	leave := client.Close
	if s.random.IntN(2) == 0 {
		leave = client.Reset
	}
	defer func() { _ = leave() }() // no further replies arrive, or the connection has failed
	sent := s.ledger.now()
	if client.Send(s.pipeline(key)) != nil {
		return
	}
	stall := time.Duration(s.random.Int64N(int64(2 * stallLease)))
	if s.random.IntN(2) == 0 {
		time.Sleep(stall) // the client stalls
		return
	}
	reply, err := client.Receive()
	switch _, failed := reply.(redistest.RespError); {
	case err != nil || failed:
	case reply == nil:
		s.ledger.settled(token)
	default:
		s.relies(holding{key, token, s.ledger.now(), sent + reliable(stallLease)}, sent, stall, leave)
	}
}

// relies records a lock whose grant the client has read. The client relies on the lock until it
// expires, even after it has disconnected.
func (s *staller) relies(h holding, asked, stall time.Duration, leave func() error) {
	s.ledger.granted(h, asked)
	time.Sleep(stall) // the client stalls
	_ = leave()
	time.Sleep(h.to - s.ledger.now()) // until the lease has ended
	s.ledger.ended(h.token)
}

func (s *staller) rest() { nap(s.random, stallPause) }
