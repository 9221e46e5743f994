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
	// convergeRoundsEnv sets the number of rounds that TestConverge runs for each kind, on 3 and on
	// 5 masters.
	convergeRoundsEnv = "REDLOCK_ROUNDS_CONVERGE"
	// defaultConvergeRounds is the default; it takes about two minutes on two busy cores.
	defaultConvergeRounds = 3

	// agreeTime is the time from the last command until all masters must agree.
	agreeTime = 2 * time.Second
	// contentionTime is the time for which clients compete in a round.
	contentionTime = 300 * time.Millisecond
	// longTTL is the TTL of the values that clients write, in milliseconds.
	longTTL = "600000"
)

// casScript is a usual compare-and-set for a single Redis.
const casScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("set",KEYS[1],ARGV[2],"PX",ARGV[3]) end return false`

// writeKind is a way to write a value, possibly after a read.
type writeKind struct {
	name  string
	write func(client *redistest.Client, key, value string) (any, error)
}

func writeKinds() []writeKind {
	plain := func(words ...string) func(*redistest.Client, string, string) (any, error) {
		return func(client *redistest.Client, key, value string) (any, error) {
			command := []string{words[0], key}
			if words[0] != "INCR" {
				command = append(command, value)
			}
			return client.Do(append(command, words[1:]...)...)
		}
	}
	return []writeKind{
		{"SET", plain("SET", "PX", longTTL)},
		{"INCR", plain("INCR")},
		{"GETSET", plain("GETSET")},
		{"SET XX", plain("SET", "XX", "PX", longTTL)},
		{"SET IFEQ", writeAfterGet(func(key, old, value string) []string {
			return []string{"SET", key, value, "IFEQ", old, "PX", longTTL}
		})},
		{"script", writeAfterGet(func(key, old, value string) []string {
			return []string{"EVAL", casScript, "1", key, old, value, longTTL}
		})},
		{"transaction", writeInTransaction},
	}
}

// writeAfterGet returns a write that reads the key and sends a command that depends on its value.
func writeAfterGet(command func(key, old, value string) []string) func(*redistest.Client, string, string) (any, error) {
	return func(client *redistest.Client, key, value string) (any, error) {
		old, err := client.Do("GET", key)
		text, ok := old.(string)
		if err != nil || !ok {
			return old, err
		}
		return client.Do(command(key, text, value)...)
	}
}

// writeInTransaction writes in a transaction that fails if the value has changed since the WATCH.
func writeInTransaction(client *redistest.Client, key, value string) (reply any, err error) {
	for _, command := range [][]string{{"WATCH", key}, {"GET", key}, {"MULTI"}, {"SET", key, value, "PX", longTTL},
		{"EXEC"}} {
		if reply, err = client.Do(command...); err != nil {
			return nil, err
		}
		if _, failed := reply.(redistest.RespError); failed {
			// After a MULTI, DISCARD also ends the WATCH. Its error without a MULTI does not
			// matter.
			_, err := client.Do("DISCARD")
			return reply, err
		}
	}
	return reply, nil
}

// TestConverge lets clients of two proxies write a few keys concurrently, without faults. Two
// seconds after the last command all masters agree, so that every command still works if a minority
// stops at that moment. A proxy may have found a master down that the test had not stopped, or a
// reply may have been late. Then the masters only have to agree eventually, and the round is repeated.
func TestConverge(t *testing.T) {
	rounds := int(kit.NumberFrom(t, convergeRoundsEnv, defaultConvergeRounds))
	for _, masters := range []int{3, 5} {
		for _, kind := range writeKinds() {
			t.Run(fmt.Sprintf("%s on %d masters", kind.name, masters), func(t *testing.T) {
				f := startFleet(t, masters)
				for range 2 {
					f.startProxy(t)
				}
				disturbed := 0
				for round := 0; round < rounds+disturbed; round++ {
					clients := []int{2, 8, 64}[round%3]
					if round >= 3 {
						clients = 2 + rand.IntN(63)
					}
					c := newConvergence(f, kind, round)
					err := c.runRound(t, clients)
					switch {
					case err == nil:
					case !c.hasUnexpectedDowns() && (c.agreed || !c.hasLateReplies()):
						t.Fatalf("in round %d: %d clients, equal values: %v, replies: %v: %v", round, clients, c.sameValue,
							c.replies, err)
					case disturbed > 10+rounds:
						t.Fatalf("masters were down or late in %d rounds: the processors are too busy for this test", disturbed)
					default:
						disturbed++
						c.awaitAgreement(t)
					}
				}
				t.Logf("%d rounds, and %d in which masters were down or late", rounds, disturbed)
			})
		}
	}
}

// TestConvergeTwoSetters lets two clients of two proxies repeatedly set the same keys to their own
// values, on three masters without faults. Two seconds later all masters agree.
func TestConvergeTwoSetters(t *testing.T) {
	f := startFleet(t, 3)
	for range 2 {
		f.startProxy(t)
	}
	c := &convergence{fleet: f, kind: writeKinds()[0], replies: map[string]int{}, downCountsBefore: f.downCounts()}
	for i := range 20 {
		c.keys = append(c.keys, fmt.Sprint("lock:", i))
	}
	clients := []*redistest.Client{connect(t, f.proxies[0]), connect(t, f.proxies[1])}
	for _, key := range c.keys { // both clients finish with a key before they use the next
		var tasks sync.WaitGroup
		for i, client := range clients {
			tasks.Go(func() {
				for turn := range 10 {
					c.countReply(c.kind.write(client, key, fmt.Sprintf("%d.%d", i, turn)))
				}
			})
		}
		tasks.Wait()
	}
	t.Logf("replies: %v", c.replies)
	time.Sleep(agreeTime) // this test checks exactly this time
	if err := c.compareMasters(t); err != nil {
		if !c.hasUnexpectedDowns() && !c.hasLateReplies() {
			t.Fatal(err)
		}
		c.awaitAgreement(t)
	}
}

// convergence is a contest of many clients for a few keys.
type convergence struct {
	fleet     *fleet
	kind      writeKind
	sameValue bool // all clients write the same value
	keys      []string
	agreed    bool // all masters agreed after agreeTime
	// downCountsBefore holds, for each link, the number of times that its proxy had found the master
	// down before the round. stoppedMasters lists the masters that the test stopped.
	downCountsBefore map[string]int
	stoppedMasters   []int

	mu      sync.Mutex
	replies map[string]int
}

func newConvergence(f *fleet, kind writeKind, round int) *convergence {
	c := &convergence{fleet: f, kind: kind, sameValue: round%2 == 1, replies: map[string]int{}, downCountsBefore: f.downCounts()}
	for i := range 2 {
		c.keys = append(c.keys, fmt.Sprintf("lock:%d:%d", round, i))
	}
	return c
}

// runRound runs one round, and returns the violations.
func (c *convergence) runRound(t *testing.T, clients int) error {
	t.Helper()
	for _, key := range c.keys { // so that there is a value to replace
		if reply, _ := kit.DoInTime(t, connect(t, c.fleet.proxies[0]), "SET", key, "0", "PX", longTTL); reply != "OK" {
			return fmt.Errorf("SET %s: %v", key, reply)
		}
	}
	c.runWriters(t, clients)
	time.Sleep(agreeTime) // this test checks exactly this time
	if err := c.compareMasters(t); err != nil {
		return err
	}
	c.agreed = true
	return c.checkWithoutMinority(t)
}

// downCounts returns, for each link, the number of times that its proxy found the master down.
func (f *fleet) downCounts() map[string]int {
	counts := map[string]int{}
	for _, p := range f.proxies {
		for line := range strings.Lines(p.Log()) {
			if _, rest, isDown := strings.Cut(line, `msg="master down" master=`); isDown {
				counts[strings.Fields(rest)[0]]++
			}
		}
	}
	return counts
}

// hasUnexpectedDowns reports whether a proxy found a master down that the test had not stopped.
func (c *convergence) hasUnexpectedDowns() bool {
	counts := c.fleet.downCounts()
	for _, p := range c.fleet.proxies {
		for i, link := range p.links {
			if counts[link.Addr()] != c.downCountsBefore[link.Addr()] && !slices.Contains(c.stoppedMasters, i) {
				return true
			}
		}
	}
	return false
}

// hasLateReplies reports whether a majority agreed too late on a command of the contest.
func (c *convergence) hasLateReplies() bool {
	for reply := range c.replies {
		if kit.IsLate(redistest.RespError(reply)) {
			return true
		}
	}
	return false
}

// runWriters lets the given number of clients write, and waits for all replies.
func (c *convergence) runWriters(t *testing.T, clients int) {
	t.Helper()
	start := time.Now()
	var tasks sync.WaitGroup
	for i := range clients {
		client := connect(t, c.fleet.proxies[i%2])
		tasks.Go(func() {
			defer client.Close()
			for turn := 0; time.Since(start) < contentionTime; turn++ {
				value := "1"
				if !c.sameValue {
					value = fmt.Sprintf("%d.%d", i, turn)
				}
				c.countReply(c.kind.write(client, c.keys[rand.IntN(len(c.keys))], value))
			}
		})
	}
	tasks.Wait()
}

// countReply counts a reply by its kind.
func (c *convergence) countReply(reply any, err error) {
	outcome := fmt.Sprintf("%T", reply)
	if failure, failed := reply.(redistest.RespError); failed {
		outcome = string(failure)
	}
	if err != nil {
		outcome = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[outcome]++
}

// compareMasters returns nil if all masters have the same value of each key, and similar remaining
// times.
func (c *convergence) compareMasters(t *testing.T) error {
	t.Helper()
	byMaster, reads := make([][]keyState, len(c.fleet.masters)), make([]timeRange, len(c.fleet.masters))
	for i, master := range c.fleet.masters {
		reads[i].from = time.Now()
		byMaster[i] = readKeys(t, master, c.keys...)
		reads[i].to = time.Now()
	}
	var differences []error
	for k, key := range c.keys {
		first, equal := byMaster[0][k], true
		states := ""
		for i, cells := range byMaster {
			equal = equal && harness.SameCells([]any{cells[k].value, first.value}) &&
				(cells[k].pttl == first.pttl || reads[i].plus(cells[k].pttl).distance(reads[0].plus(first.pttl)) <= 2*time.Second)
			states += fmt.Sprintf("\n  %s: %v", letters([]int{i}), cells[k])
		}
		if !equal {
			differences = append(differences, fmt.Errorf("%s is not the same on all masters:%s", key, states))
		}
	}
	return errors.Join(differences...)
}

// plus returns the range that is later by d.
func (s timeRange) plus(d time.Duration) timeRange { return timeRange{s.from.Add(d), s.to.Add(d)} }

// distance returns the time between two ranges, which is not positive if they overlap.
func (s timeRange) distance(other timeRange) time.Duration {
	return max(s.from.Sub(other.to), other.from.Sub(s.to))
}

// awaitAgreement waits until all masters agree, including masters that were briefly unreachable.
func (c *convergence) awaitAgreement(t *testing.T) {
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

// checkWithoutMinority returns an error unless a write, a read and a delete work on each key
// without a random minority.
func (c *convergence) checkWithoutMinority(t *testing.T) error {
	t.Helper()
	masters := c.fleet.masters
	c.stoppedMasters = rand.Perm(len(masters))[:(len(masters)-1)/2]
	for _, i := range c.stoppedMasters {
		kit.Must(t, masters[i].Pause())
	}
	var failures []error
	client := connect(t, c.fleet.proxies[0])
	for _, key := range c.keys {
		failures = append(failures, c.checkKeyUsable(t, client, key))
	}
	for _, i := range c.stoppedMasters {
		kit.Must(t, masters[i].Continue())
	}
	for _, p := range c.fleet.proxies {
		p.wantVoting(t)
	}
	return errors.Join(failures...)
}

// checkKeyUsable returns nil if a key can be changed by the command, read and deleted.
func (c *convergence) checkKeyUsable(t *testing.T, client *redistest.Client, key string) error {
	t.Helper()
	oldValue, _ := kit.DoInTime(t, client, "GET", key)
	reply, err := c.kind.write(client, key, "after")
	kit.Must(t, err)
	newValue, _ := kit.DoInTime(t, client, "GET", key)
	want := any("after")
	if n, err := strconv.Atoi(fmt.Sprint(oldValue)); c.kind.name == "INCR" && err == nil {
		want = strconv.Itoa(n + 1)
	}
	if newValue != want && !(kit.IsLate(reply) && newValue == oldValue) {
		return fmt.Errorf("%s without %s: it held %v, the command was answered %v, then it held %v", key,
			letters(c.stoppedMasters), oldValue, reply, newValue)
	}
	if reply, wasLate := kit.DoInTime(t, client, "DEL", key); reply != any(int64(1)) && !(wasLate && reply == any(int64(0))) {
		return fmt.Errorf("DEL %s without %s: %v", key, letters(c.stoppedMasters), reply)
	}
	return nil
}
