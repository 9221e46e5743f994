//go:build integration

package schedules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// keyState is the content of a key on a master.
type keyState struct {
	value any // a string, or nil without such a key
	pttl  time.Duration
}

func (c keyState) String() string {
	if c.value == nil {
		return "nothing"
	}
	return fmt.Sprintf("%v for %v", c.value, c.pttl)
}

// readKeys reads all keys directly from a master, at one moment.
func readKeys(t *testing.T, master *redistest.Server, keys ...string) []keyState {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	words := append([]string{"EVAL", `local held = {}
for i, key in ipairs(KEYS) do held[2 * i - 1], held[2 * i] = redis.call('get', key), redis.call('pttl', key) end
return held`, fmt.Sprint(len(keys))}, keys...)
	fields, ok := kit.Do(t, client, words...).([]any)
	if !ok || len(fields) != 2*len(keys) {
		t.Fatalf("master %s: %v: %v", master.Addr(), keys, fields)
	}
	cells := make([]keyState, len(keys))
	for i := range cells {
		pttl, _ := fields[2*i+1].(int64)
		cells[i] = keyState{fields[2*i], time.Duration(pttl) * time.Millisecond}
	}
	return cells
}

// mustSend sends a command directly to a master, and fails the test on an error.
func mustSend(t *testing.T, master *redistest.Server, command ...string) {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	if failure, bad := kit.Do(t, client, command...).(redistest.RespError); bad {
		t.Fatalf("master %s: %v: %v", master.Addr(), command, failure)
	}
}

// holders returns the masters that have a token at a key.
func (f *fleet) holders(t *testing.T, key, token string) []int {
	t.Helper()
	var holders []int
	for i, master := range f.masters {
		if value, ok := readKeys(t, master, key)[0].value.(string); ok && strings.HasSuffix(value, token) {
			holders = append(holders, i)
		}
	}
	return holders
}

// wantHolders waits until exactly the given masters have a token at a key.
func (f *fleet) wantHolders(t *testing.T, key, token string, masters ...int) {
	t.Helper()
	kit.Eventually(t, func() error {
		if got := f.holders(t, key, token); !slices.Equal(got, masters) {
			return fmt.Errorf("%s is %s on the masters %v, want %v", key, token, got, masters)
		}
		return nil
	})
}

// allMasters returns the indexes of all masters.
func (f *fleet) allMasters() []int {
	masters := make([]int, len(f.masters))
	for i := range masters {
		masters[i] = i
	}
	return masters
}

// catchUpProbe is a lock on all masters. A master that has it again has caught up.
const catchUpProbe = "lock:sentinel"

// lockCatchUpProbe takes the lock catchUpProbe on all masters.
func (f *fleet) lockCatchUpProbe(t *testing.T, client *redistest.Client) {
	t.Helper()
	wantGrant(t, client, "LOCK", catchUpProbe, "sentinel", "PX", "600000")
	f.wantHolders(t, catchUpProbe, "sentinel", f.allMasters()...)
}

// wantCaughtUp waits until a master has caught up, and the proxy sees all masters vote.
func (f *fleet) wantCaughtUp(t *testing.T, p *proxy, master int) {
	t.Helper()
	kit.Eventually(t, func() error {
		if !slices.Contains(f.holders(t, catchUpProbe, "sentinel"), master) {
			return fmt.Errorf("master %d does not catch up", master)
		}
		return nil
	})
	p.wantVoting(t)
}

// holds lists the held messages of several links.
type holds []*faultlink.Hold

// hold holds the proxy's commands about the key to masters, except the first passCount commands to
// each.
func (p *proxy) hold(key string, passCount int, masters ...int) holds {
	var heldCommands holds
	for _, i := range masters {
		heldCommands = append(heldCommands, p.links[i].HoldCommands(faultlink.SkipFirst(passCount, faultlink.Containing(key))))
	}
	return heldCommands
}

// holdReplies holds the replies of the given masters to the proxy about the key.
func (p *proxy) holdReplies(key string, masters ...int) holds {
	var held holds
	for _, i := range masters {
		held = append(held, p.links[i].HoldReplies(faultlink.Containing(key)))
	}
	return held
}

// cutOff holds all commands that the proxy sends to the given masters.
func (p *proxy) cutOff(masters ...int) holds {
	var held holds
	for _, i := range masters {
		held = append(held, p.links[i].HoldCommands(faultlink.AnyCommand))
	}
	return held
}

// wait waits until each link has held a message.
func (h holds) wait(t *testing.T) {
	t.Helper()
	for _, hold := range h {
		kit.Must(t, hold.Wait(1, kit.WaitLimit))
	}
}

func (h holds) release() {
	for _, hold := range h {
		hold.Release()
	}
}

func (h holds) discard() {
	for _, hold := range h {
		hold.Discard()
	}
}

// takeLockOn takes a lock by a LOCK that reaches only the given masters.
func (f *fleet) takeLockOn(t *testing.T, p *proxy, masters []int, client *redistest.Client, command ...string) (validUntil time.Time) {
	t.Helper()
	notReached := p.hold(command[1], 0, slices.DeleteFunc(f.allMasters(), func(i int) bool { return slices.Contains(masters, i) })...)
	validUntil = wantGrant(t, client, command...)
	notReached.wait(t)
	notReached.discard()
	p.wantVoting(t)
	f.wantHolders(t, command[1], command[2], masters...)
	return validUntil
}

// contains reports whether masters contains i.
func contains(masters []int, i int) bool { return slices.Contains(masters, i) }

// letters returns the letters of masters.
func letters(masters []int) string {
	if len(masters) == 0 {
		return "no master"
	}
	var letters []byte
	for _, i := range masters {
		letters = append(letters, byte('A'+i))
	}
	return string(letters)
}
