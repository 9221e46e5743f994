package holdings

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// Contest lets clients repeatedly take the same lock, and records the history of the lock.
type Contest struct {
	History  *History // history of the lock
	grants   chan int // the number of grants so far; may skip values
	stopping chan struct{}
	workers  sync.WaitGroup

	mu      sync.Mutex
	Replies map[string]int // the number of replies of each kind; read it only after Stop
}

// NewContest returns a contest without clients. Its history begins now.
func NewContest() *Contest {
	return &Contest{
		History: NewHistory(), Replies: map[string]int{},
		grants: make(chan int, 1), stopping: make(chan struct{}),
	}
}

// AddClient adds a client. The client calls turn repeatedly until Stop, each time with a new token.
func (c *Contest) AddClient(name string, turn func(token string)) {
	c.workers.Go(func() { c.runTurns(name, turn) })
}

// WaitFor waits for the given number of grants. It returns an error if no grant comes within
// ten minutes.
func (c *Contest) WaitFor(t *testing.T, grants int) error {
	t.Helper()
	last, step := 0, max(grants/10, 1)
	for last < grants {
		select {
		case last = <-c.grants:
			if last >= step {
				t.Logf("%d grants after %v", last, c.History.Now().Round(time.Second))
				step += max(grants/10, 1)
			}
		case <-time.After(10 * time.Minute):
			return fmt.Errorf("no grant within ten minutes, after %d", last)
		}
	}
	return nil
}

// Stop ends the contest after every client has finished its turn.
func (c *Contest) Stop() {
	close(c.stopping)
	c.workers.Wait()
}

// Report logs the numbers of grants and of each kind of reply so far.
func (c *Contest) Report(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.History.Now()
	grants := c.History.Count()
	t.Logf("%d grants in %v: %.0f per second; replies: %v",
		grants, elapsed.Round(time.Millisecond), float64(grants)/elapsed.Seconds(), c.Replies)
}

// CountReply counts a reply to a command, or its error.
func (c *Contest) CountReply(command string, reply any, err error) {
	kind := fmt.Sprintf("%s → %v", command, reply)
	if failure, isError := reply.(redistest.RespError); isError {
		kind = command + " → " + kit.FirstWord(string(failure))
	}
	if err != nil {
		kind = fmt.Sprintf("%s: %v", command, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Replies[kind]++
}

func (c *Contest) runTurns(name string, turn func(token string)) {
	for n := 0; ; n++ {
		select {
		case <-c.stopping:
			return
		default:
			turn(name + "-" + strconv.Itoa(n))
		}
	}
}

// AddHolding adds a holding to the history.
func (c *Contest) AddHolding(holding Holding) {
	n := c.History.Add(holding)
	select {
	case c.grants <- n:
	default:
	}
}
