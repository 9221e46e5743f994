//go:build integration

package schedules

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// convergeRoundsEnv sets how many rounds TestConverge runs for each kind, on 3 and on 5
	// masters.
	convergeRoundsEnv = "REDLOCK_ROUNDS_CONVERGE"
	// defaultConvergeRounds is the default; it takes about two minutes on two busy cores.
	defaultConvergeRounds = 3

	// quiet is the time from the last command until all masters must agree.
	quiet = 2 * time.Second
	// contention is how long clients compete in a round.
	contention = 300 * time.Millisecond
	// longTime is the lease of the values that clients write.
	longTime = "600000"
)

// casScript is a usual compare-and-set for a single Redis.
const casScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("set",KEYS[1],ARGV[2],"PX",ARGV[3]) end return false`

// kind is a way to write a value, possibly after a read.
type kind struct {
	name  string
	write func(client *redistest.Client, key, value string) (any, error)
}

func kinds() []kind {
	plain := func(words ...string) func(*redistest.Client, string, string) (any, error) {
		return func(client *redistest.Client, key, value string) (any, error) {
			command := []string{words[0], key}
			if words[0] != "INCR" {
				command = append(command, value)
			}
			return client.Do(append(command, words[1:]...)...)
		}
	}
	return []kind{
		{"SET", plain("SET", "PX", longTime)},
		{"INCR", plain("INCR")},
		{"GETSET", plain("GETSET")},
		{"SET XX", plain("SET", "XX", "PX", longTime)},
		{"SET IFEQ", afterGet(func(key, old, value string) []string {
			return []string{"SET", key, value, "IFEQ", old, "PX", longTime}
		})},
		{"script", afterGet(func(key, old, value string) []string {
			return []string{"EVAL", casScript, "1", key, old, value, longTime}
		})},
		{"transaction", transaction},
	}
}

// afterGet returns a write that reads the key and sends a command that depends on its value.
func afterGet(command func(key, old, value string) []string) func(*redistest.Client, string, string) (any, error) {
	return func(client *redistest.Client, key, value string) (any, error) {
		old, err := client.Do("GET", key)
		text, ok := old.(string)
		if err != nil || !ok {
			return old, err
		}
		return client.Do(command(key, text, value)...)
	}
}

// transaction writes in a transaction that fails if the value has changed since the WATCH.
func transaction(client *redistest.Client, key, value string) (reply any, err error) {
	for _, command := range [][]string{{"WATCH", key}, {"GET", key}, {"MULTI"}, {"SET", key, value, "PX", longTime},
		{"EXEC"}} {
		if reply, err = client.Do(command...); err != nil {
			return nil, err
		}
		if _, failed := reply.(redistest.RespError); failed {
			_, err := client.Do("DISCARD") // also ends the WATCH; an error without a MULTI does not matter
			return reply, err
		}
	}
	return reply, nil
}

// TestConverge: clients of two proxies write a few keys concurrently, without faults. Two seconds
// after the last command all masters agree, so that every command still works if a minority stops
// at that moment. If a proxy found a master down that the test had not stopped, the masters only
// have to agree eventually, and the round is repeated.
func TestConverge(t *testing.T) {
	rounds := int(kit.NumberFrom(t, convergeRoundsEnv, defaultConvergeRounds))
	for _, masters := range []int{3, 5} {
		for _, kind := range kinds() {
			t.Run(fmt.Sprintf("%s on %d masters", kind.name, masters), func(t *testing.T) {
				f := startFleet(t, masters)
				for range 2 {
					f.proxy(t)
				}
				disturbed := 0
				for round := 0; round < rounds+disturbed; round++ {
					clients := []int{2, 8, 64}[round%3]
					if round >= 3 {
						clients = 2 + rand.IntN(63)
					}
					c := newConvergence(f, kind, round)
					err := c.contest(t, clients)
					switch {
					case err == nil:
					case !c.disturbed():
						t.Fatalf("in round %d: %d clients, equal values: %v, replies: %v: %v", round, clients, c.equal,
							c.replies, err)
					case disturbed > 10+rounds:
						t.Fatalf("masters were down in %d rounds: the processors are too busy for this test", disturbed)
					default:
						disturbed++
						c.wantSameInTheEnd(t)
					}
				}
				t.Logf("%d rounds, and %d in which masters were down", rounds, disturbed)
			})
		}
	}
}

// TestConvergeTwoSetters: two clients of two proxies repeatedly set the same keys to their own
// values, on three masters without faults. Two seconds later all masters agree.
func TestConvergeTwoSetters(t *testing.T) {
	f := startFleet(t, 3)
	for range 2 {
		f.proxy(t)
	}
	c := &convergence{fleet: f, kind: kinds()[0], replies: map[string]int{}, downs: f.downs()}
	for i := range 20 {
		c.keys = append(c.keys, fmt.Sprint("lock:", i))
	}
	clients := []*redistest.Client{connect(t, f.proxies[0]), connect(t, f.proxies[1])}
	for _, key := range c.keys { // both clients use the same key, until their last command
		var busy sync.WaitGroup
		for i, client := range clients {
			busy.Go(func() {
				for turn := range 10 {
					c.count(c.kind.write(client, key, fmt.Sprintf("%d.%d", i, turn)))
				}
			})
		}
		busy.Wait()
	}
	t.Logf("replies: %v", c.replies)
	time.Sleep(quiet) // this test checks exactly this time
	if err := c.compareMasters(t); err != nil {
		if !c.disturbed() {
			t.Fatal(err)
		}
		c.wantSameInTheEnd(t)
	}
}

// convergence is a contest of many clients for a few keys.
type convergence struct {
	fleet *fleet
	kind  kind
	equal bool // all clients write the same value
	keys  []string
	// downs counts, for each master, how often the proxies had found it down at the beginning.
	// stopped lists the masters that the test stopped.
	downs   map[string]int
	stopped []int

	mu      sync.Mutex
	replies map[string]int
}

func newConvergence(f *fleet, kind kind, round int) *convergence {
	c := &convergence{fleet: f, kind: kind, equal: round%2 == 1, replies: map[string]int{}, downs: f.downs()}
	for i := range 2 {
		c.keys = append(c.keys, fmt.Sprintf("lock:%d:%d", round, i))
	}
	return c
}

// contest runs one round, and returns the violations.
func (c *convergence) contest(t *testing.T, clients int) error {
	t.Helper()
	for _, key := range c.keys { // so that there is a value to replace
		if reply := kit.Do(t, connect(t, c.fleet.proxies[0]), "SET", key, "0", "PX", longTime); reply != "OK" {
			return fmt.Errorf("SET %s: %v", key, reply)
		}
	}
	c.contend(t, clients)
	time.Sleep(quiet) // this test checks exactly this time
	if err := c.compareMasters(t); err != nil {
		return err
	}
	return c.minorityMissed(t)
}

// downs counts, for each master, how often the proxies found it down.
func (f *fleet) downs() map[string]int {
	found := map[string]int{}
	for _, p := range f.proxies {
		for line := range strings.Lines(p.Log()) {
			if _, rest, down := strings.Cut(line, `msg="master down" master=`); down {
				found[strings.Fields(rest)[0]]++
			}
		}
	}
	return found
}

// disturbed reports whether a proxy found a master down that the test had not stopped.
func (c *convergence) disturbed() bool {
	now := c.fleet.downs()
	for i, master := range c.fleet.masters {
		if now[master.Addr()] != c.downs[master.Addr()] && !slices.Contains(c.stopped, i) {
			return true
		}
	}
	return false
}

// contend lets the given number of clients write, and waits for all replies.
func (c *convergence) contend(t *testing.T, clients int) {
	t.Helper()
	began := time.Now()
	var busy sync.WaitGroup
	for i := range clients {
		client := connect(t, c.fleet.proxies[i%2])
		busy.Go(func() {
			defer client.Close()
			for turn := 0; time.Since(began) < contention; turn++ {
				value := "1"
				if !c.equal {
					value = fmt.Sprintf("%d.%d", i, turn)
				}
				c.count(c.kind.write(client, c.keys[rand.IntN(len(c.keys))], value))
			}
		})
	}
	busy.Wait()
}

// count counts a reply by its kind.
func (c *convergence) count(reply any, err error) {
	what := fmt.Sprintf("%T", reply)
	if failure, failed := reply.(redistest.RespError); failed {
		what = string(failure)
	}
	if err != nil {
		what = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[what]++
}

// compareMasters returns nil if all masters have the same value of each key, and similar remaining
// times.
func (c *convergence) compareMasters(t *testing.T) error {
	t.Helper()
	held := make([][]cell, len(c.fleet.masters))
	for i, master := range c.fleet.masters {
		held[i] = look(t, master, c.keys...)
	}
	var wrong []error
	for k, key := range c.keys {
		first, same := held[0][k], true
		all := ""
		for i, cells := range held {
			same = same && harness.Agree([]any{cells[k].value, first.value}) &&
				(cells[k].left-first.left).Abs() <= 2*time.Second
			all += fmt.Sprintf("\n  %s: %v", names([]int{i}), cells[k])
		}
		if !same {
			wrong = append(wrong, fmt.Errorf("%s is not the same on all masters:%s", key, all))
		}
	}
	return errors.Join(wrong...)
}

// wantSameInTheEnd waits until all masters agree, including those that were briefly unreachable.
func (c *convergence) wantSameInTheEnd(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := c.compareMasters(t)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// minorityMissed returns an error unless a write, a read and a delete work on each key without a
// random minority.
func (c *convergence) minorityMissed(t *testing.T) error {
	t.Helper()
	masters := c.fleet.masters
	c.stopped = rand.Perm(len(masters))[:(len(masters)-1)/2]
	for _, i := range c.stopped {
		kit.Must(t, masters[i].Pause())
	}
	var wrong []error
	client := connect(t, c.fleet.proxies[0])
	for _, key := range c.keys {
		wrong = append(wrong, c.checkWorks(t, client, key))
	}
	for _, i := range c.stopped {
		kit.Must(t, masters[i].Continue())
	}
	for _, p := range c.fleet.proxies {
		p.wantVoting(t)
	}
	return errors.Join(wrong...)
}

// checkWorks returns nil if a key can be changed by the command, read and deleted.
func (c *convergence) checkWorks(t *testing.T, client *redistest.Client, key string) error {
	t.Helper()
	before := kit.Do(t, client, "GET", key)
	reply, err := c.kind.write(client, key, "after")
	kit.Must(t, err)
	after := kit.Do(t, client, "GET", key)
	wanted := any("after")
	if n, err := strconv.Atoi(fmt.Sprint(before)); c.kind.name == "INCR" && err == nil {
		wanted = strconv.Itoa(n + 1)
	}
	if after != wanted {
		return fmt.Errorf("%s without %s: it held %v, the command was answered %v, then it held %v", key,
			names(c.stopped), before, reply, after)
	}
	if reply := kit.Do(t, client, "DEL", key); reply != any(int64(1)) {
		return fmt.Errorf("DEL %s without %s: %v", key, names(c.stopped), reply)
	}
	return nil
}
