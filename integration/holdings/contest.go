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

// Contest is clients that want the same lock again and again, and what each of them saw.
type Contest struct {
	History *History // of the lock
	enough  chan int // how many grants there were, now and then
	over    chan struct{}
	workers sync.WaitGroup

	mu      sync.Mutex
	Replies map[string]int // how many of each kind; to be read after Stop
}

// NewContest is one that nobody takes part in yet. Its history begins now.
func NewContest() *Contest {
	return &Contest{History: NewHistory(), enough: make(chan int, 1), over: make(chan struct{}), Replies: map[string]int{}}
}

// Enter has one more client take turns, each with a token of its own, until the contest is over.
func (c *Contest) Enter(name string, turn func(token string)) {
	c.workers.Go(func() { c.turns(name, turn) })
}

// WaitFor waits for so many grants. It returns an error when none comes within a minute.
func (c *Contest) WaitFor(t *testing.T, grants int) error {
	t.Helper()
	last, step := 0, max(grants/10, 1)
	for last < grants {
		select {
		case last = <-c.enough:
			if last >= step {
				t.Logf("%d grants after %v", last, c.History.Now().Round(time.Second))
				step += max(grants/10, 1)
			}
		case <-time.After(time.Minute):
			return fmt.Errorf("no grant within a minute, after %d", last)
		}
	}
	return nil
}

// Stop ends the contest: every client finishes its turn.
func (c *Contest) Stop() {
	close(c.over)
	c.workers.Wait()
}

// Report logs the figures so far.
func (c *Contest) Report(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	took := c.History.Now()
	grants := c.History.Count()
	t.Logf("%d grants in %v: %.0f per second; replies: %v", grants, took.Round(time.Millisecond), float64(grants)/took.Seconds(), c.Replies)
}

// Count counts a reply to a command, or the error in its place.
func (c *Contest) Count(command string, reply any, err error) {
	kind := fmt.Sprintf("%s → %v", command, reply)
	if failure, bad := reply.(redistest.RespError); bad {
		kind = command + " → " + kit.FirstWord(string(failure))
	}
	if err != nil {
		kind = fmt.Sprintf("%s: %v", command, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Replies[kind]++
}

// turns has one client take its turns.
func (c *Contest) turns(name string, turn func(token string)) {
	for n := 0; ; n++ {
		select {
		case <-c.over:
			return
		default:
			turn(name + "-" + strconv.Itoa(n))
		}
	}
}

// Granted adds a holding to the history.
func (c *Contest) Granted(one Holding) {
	n := c.History.Add(one)
	select {
	case c.enough <- n:
	default:
	}
}
