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
	// shared is the value that all stallers lock with: who holds what is known by the client alone.
	shared = "1"
	// stallLease is the lease of what they take.
	stallLease = 500 * time.Millisecond
	// largeOwn is a lock key, and largeOther a key of the upstream, whose values are large.
	largeOwn, largeOther = "lock:large", "large"
)

// staller is a client that sends a lock command with replies behind it that are larger than all
// buffers on their way. It does not read them, and leaves in their midst when its lease may be
// over, or reads no more than whether it was granted the lock. It gives nothing back.
type staller struct {
	ledger *ledger
	addrs  []string
	keys   []string
	number int
	random *rand.Rand
}

// startLarge puts the large values there.
func startLarge(t *testing.T, c *cluster) {
	t.Helper()
	for key, size := range map[string]int{largeOwn: 128 << 10, largeOther: 1 << 20} {
		_, err := ask(c.proxies[0].addr, "SET", key, string(bytes.Repeat([]byte("v"), size)))
		kit.Must(t, err)
	}
}

// pipeline is a lock command with 8 MB of replies behind it.
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

// turn is one such connection. What is lost with it counts as an answer that never came.
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
	defer func() { _ = leave() }() // it has nothing more to say, or has failed already
	sent := s.ledger.now()
	if client.Send(s.pipeline(key)) != nil {
		return
	}
	stall := time.Duration(s.random.Int64N(int64(2 * stallLease)))
	if s.random.IntN(2) == 0 {
		time.Sleep(stall) // the client stands still
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

// relies is for a lock of which the client was told. It relies on it to its end, also when it has
// left.
func (s *staller) relies(h holding, asked, stall time.Duration, leave func() error) {
	s.ledger.granted(h, asked)
	time.Sleep(stall) // the client stands still
	_ = leave()
	time.Sleep(h.to - s.ledger.now()) // until the lease is over
	s.ledger.ended(h.token)
}

func (s *staller) rest() { nap(s.random, stallPause) }
