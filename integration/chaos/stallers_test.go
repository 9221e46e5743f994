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
	// sharedToken is the value with which all stallers lock. So a lock's value does not show which
	// client holds it.
	sharedToken = "1"
	// stallLease is the lease of stallers' locks.
	stallLease = 500 * time.Millisecond
	// largeLockKey is a lock key with a large value. largeKey is a key of the upstream with a large
	// value.
	largeLockKey, largeKey = "lock:large", "large"
)

// staller is a client that sends a lock command followed by commands with replies larger than all
// buffers. It reads nothing, or only the reply to the lock command. It disconnects after a random
// time, before or after the end of its lease. It releases nothing.
type staller struct {
	ledger *ledger
	addrs  []string
	keys   []string
	number int
	random *rand.Rand
	// sharing, if it is set, is the kind of lock that the client takes with LOCK.
	sharing *sharing
}

// setLargeValues sets the large values.
func setLargeValues(t *testing.T, c *cluster) {
	t.Helper()
	for key, size := range map[string]int{largeLockKey: 128 << 10, largeKey: 1 << 20} {
		kit.Eventually(t, func() error {
			_, err := do(c.proxies[0].addr, "SET", key, string(bytes.Repeat([]byte("v"), size)))
			return err
		})
	}
}

// pipeline returns a lock command followed by commands with 8 MB of replies.
func (s *staller) pipeline(key string) []byte {
	words, _ := s.lockWords(key)
	commands := redistest.AppendCommand(nil, words...)
	if s.random.IntN(2) == 0 {
		return redistest.AppendCommand(commands, append([]string{"MGET"}, slices.Repeat([]string{largeLockKey}, 64)...)...)
	}
	for range 8 {
		commands = redistest.AppendCommand(commands, "GET", largeKey)
	}
	return commands
}

// lockWords returns the command that locks a key, and the value of holding.slots.
func (s *staller) lockWords(key string) (words []string, slots int) {
	if s.sharing == nil {
		return []string{"SET", key, sharedToken, "NX", "PX", millis(stallLease)}, 0
	}
	return append([]string{"LOCK", key, sharedToken, "PX", millis(stallLease)}, s.sharing.words...), s.sharing.slots
}

// runTurn takes a lock on a new connection, and stalls. If the grant is lost with the connection,
// its token remains in the ledger's openTokens.
func (s *staller) runTurn() {
	key, token := s.keys[s.random.IntN(len(s.keys))], s.ledger.newToken(s.number)
	client, err := redistest.Dial(s.addrs[s.random.IntN(len(s.addrs))], replyTimeout)
	if err != nil {
		return
	}
	_ = client.ShrinkReceiveBuffer() // fails on a closed connection only
	disconnect := client.Close
	if s.random.IntN(2) == 0 {
		disconnect = client.Reset
	}
	defer func() { _ = disconnect() }() // no more replies are read, or the connection has failed
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
	switch _, isError := reply.(redistest.RespError); {
	case err != nil || isError:
	case reply == nil:
		s.ledger.recordSettled(token)
	default:
		_, slots := s.lockWords(key)
		s.relyOnLock(holding{key, token, s.ledger.now(), sent + guaranteedValidity(stallLease), slots}, sent, stall, disconnect)
	}
}

// relyOnLock records a lock whose grant the client has read. The client relies on the lock until it
// expires, even after it has disconnected.
func (s *staller) relyOnLock(h holding, sent, stall time.Duration, disconnect func() error) {
	s.ledger.recordGrant(h, sent)
	time.Sleep(stall) // the client stalls
	_ = disconnect()
	time.Sleep(h.to - s.ledger.now()) // until the validity expires
	s.ledger.recordEnd(h.token)
}

func (s *staller) waitForNextTurn() { sleepUpTo(s.random, stallPause) }
