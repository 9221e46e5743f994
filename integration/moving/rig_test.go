//go:build integration

package moving

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// rig holds an upstream, masters, and proxies.
type rig struct {
	t        *testing.T
	upstream *redistest.Server
	masters  []*redistest.Server
	proxies  []*harness.Proxy
	args     []string
	// addrs lists the addresses of the proxies, which stay the same after restarts.
	addrs []string
}

// startRig starts a rig whose locks are at the upstream.
func startRig(t *testing.T, args ...string) *rig {
	t.Helper()
	return startRigWithUpstream(t, kit.StartRedis(t, redistest.DurableArgs()...), args...)
}

func startRigWithUpstream(t *testing.T, upstream *redistest.Server, args ...string) *rig {
	t.Helper()
	r := &rig{t: t, upstream: upstream, masters: kit.StartMasters(t)}
	r.args = slices.Concat(kit.LockKeyArgs(upstream), kit.LongMasterTimeoutArgs(),
		[]string{"--move-from-upstream", "--log-level", "debug"}, args)
	for range 2 {
		r.addProxy(r.args...)
	}
	r.wantVoting()
	return r
}

// addProxy starts one more proxy.
func (r *rig) addProxy(args ...string) *harness.Proxy {
	r.t.Helper()
	proxy := kit.StartProxy(r.t, redistest.URLs(r.masters), args...)
	r.proxies, r.addrs = append(r.proxies, proxy), append(r.addrs, proxy.Addr())
	return proxy
}

// restart starts an ended proxy again, at the same address and with the settings in args.
func (r *rig) restart(i int) {
	r.t.Helper()
	r.proxies[i] = kit.StartProxy(r.t, redistest.URLs(r.masters), append(slices.Clone(r.args), "--listen", r.addrs[i])...)
}

// wantVoting waits until each proxy sees all masters vote.
func (r *rig) wantVoting() {
	r.t.Helper()
	(&kit.Fleet{Masters: r.masters, Proxies: r.proxies}).WantVoting(r.t, len(r.masters))
}

// wantAllPaused waits until each proxy has reported to each master that it has paused commands.
func (r *rig) wantAllPaused() {
	r.t.Helper()
	for _, master := range r.masters {
		kit.Eventually(r.t, func() error {
			n, err := kit.QueryDatabase(master, "0", "HLEN", "redlock-proxy:held")
			if err == nil && n != int64(len(r.proxies)) {
				err = fmt.Errorf("%v proxies hold back as far as %s knows, want %d", n, master.Addr(), len(r.proxies))
			}
			return err
		})
	}
}

// errNotMoved is the error of a failed move, with the program's output.
type errNotMoved struct{ output string }

func (e errNotMoved) Error() string { return e.output }

// move runs the program's command move for one proxy, and returns its output.
func (r *rig) move(proxy int, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), kit.WaitLimit)
	defer cancel()
	return r.moveContext(ctx, proxy, flags...)
}

func (r *rig) moveContext(ctx context.Context, proxy int, flags ...string) (string, error) {
	program, err := harness.BuildProxy(ctx)
	if err != nil {
		return "", err
	}
	output, err := exec.CommandContext(ctx, program, append([]string{"move", "--addr", r.addrs[proxy]},
		flags...)...).CombinedOutput()
	var exitErr *exec.ExitError
	if errors.As(err, &exitErr) {
		err = errNotMoved{strings.TrimSpace(string(output))}
	}
	return string(output), err
}

// mustMove moves the locks, and returns the output. A failure ends the test, unless the masters or
// a proxy did not answer in time, as on a busy machine.
func (r *rig) mustMove(proxy int, flags ...string) (output string) {
	r.t.Helper()
	kit.Eventually(r.t, func() (err error) {
		output, err = r.move(proxy, flags...)
		if err != nil && !strings.Contains(err.Error(), "NOQUORUM") &&
			!strings.Contains(err.Error(), "did not pause commands") {
			r.t.Fatalf("move %v: %v", flags, err)
		}
		return err
	})
	return output
}

// wantRefused fails the test unless a move is refused for the given reason.
func (r *rig) wantRefused(proxy int, reason string, flags ...string) {
	r.t.Helper()
	output, err := r.move(proxy, flags...)
	if err == nil || !strings.Contains(err.Error(), reason) {
		r.t.Fatalf("move %v: got %q, %v; want %q", flags, output, err, reason)
	}
}

// keysAtUpstream returns the lock keys at the upstream, of the databases 0 and 3.
func (r *rig) keysAtUpstream() []string {
	r.t.Helper()
	var keys []string
	for _, db := range []string{"0", "3"} {
		reply, err := kit.QueryDatabase(r.upstream, db, "KEYS", "lock:*")
		kit.Must(r.t, err)
		for _, key := range reply.([]any) {
			keys = append(keys, key.(string))
		}
	}
	return keys
}

// keysAtMasters returns the lock keys that match the pattern and that a majority of the masters
// hold.
func (r *rig) keysAtMasters(pattern string) []string {
	r.t.Helper()
	holders := map[string]int{}
	for _, master := range r.masters {
		for _, db := range []string{"0", "3"} {
			reply, err := kit.QueryDatabase(master, db, "KEYS", pattern)
			kit.Must(r.t, err)
			for _, key := range reply.([]any) {
				value, err := kit.QueryDatabase(master, db, "GET", key.(string))
				kit.Must(r.t, err)
				if harness.HeldToken(value) != nil {
					holders[key.(string)]++
				}
			}
		}
	}
	var keys []string
	for key, n := range holders {
		if n > len(r.masters)/2 {
			keys = append(keys, key)
		}
	}
	return keys
}

// checkNoRemainingKeys returns an error if locks are left at their former location. The former
// location is the masters if back is set, otherwise the upstream.
func (r *rig) checkNoRemainingKeys(back bool) error {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		keys := r.keysAtUpstream()
		if back {
			keys = r.keysAtMasters("lock:*")
		}
		if len(keys) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d lock keys are left where the locks are not any more: %.300q", len(keys), keys)
		}
	}
}

// formatCounts returns a map as text, sorted.
func formatCounts(counts map[string]int) string {
	var items []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		items = append(items, strconv.Itoa(counts[key])+" × "+key)
	}
	return strings.Join(items, ", ")
}
