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

// rig holds an upstream with persistence, five masters, and two proxies.
type rig struct {
	t        *testing.T
	upstream *redistest.Server
	masters  []*redistest.Server
	proxies  []*harness.Proxy
	args     []string
	// addrs lists the addresses of the proxies, which stay the same after restarts.
	addrs []string
}

// startRig starts proxies that start with the locks at the upstream.
func startRig(t *testing.T, args ...string) *rig {
	t.Helper()
	return startRigAt(t, kit.StartRedis(t, redistest.Durable()...), args...)
}

func startRigAt(t *testing.T, upstream *redistest.Server, args ...string) *rig {
	t.Helper()
	r := &rig{t: t, upstream: upstream, masters: kit.StartMasters(t)}
	r.args = slices.Concat(kit.LockKeyArgs(upstream), kit.PatientMasters(),
		[]string{"--move-from-upstream", "--log-level", "debug"}, args)
	for range 2 {
		r.add(r.args...)
	}
	r.wantVoting()
	return r
}

// add starts one more proxy.
func (r *rig) add(args ...string) *harness.Proxy {
	r.t.Helper()
	proxy := kit.StartProxy(r.t, redistest.URLs(r.masters), args...)
	r.proxies, r.addrs = append(r.proxies, proxy), append(r.addrs, proxy.Addr())
	return proxy
}

// restart restarts a proxy at the same address, with the earlier settings.
func (r *rig) restart(i int) {
	r.t.Helper()
	r.proxies[i] = kit.StartProxy(r.t, redistest.URLs(r.masters), append(slices.Clone(r.args), "--listen", r.addrs[i])...)
}

// wantVoting waits until each proxy sees all masters vote.
func (r *rig) wantVoting() {
	r.t.Helper()
	(&kit.Fleet{Masters: r.masters, Proxies: r.proxies}).WantVoting(r.t, len(r.masters))
}

// wantAllHold waits until each proxy has reported to each master that it has paused commands.
func (r *rig) wantAllHold() {
	r.t.Helper()
	for _, master := range r.masters {
		kit.Soon(r.t, func() error {
			n, err := kit.AskIn(master, "0", "HLEN", "redlock-proxy:held")
			if err == nil && n != int64(len(r.proxies)) {
				err = fmt.Errorf("%v proxies hold back as far as %s knows, want %d", n, master.Addr(), len(r.proxies))
			}
			return err
		})
	}
}

// errNotMoved is the error of a failed move, with the program's output.
type errNotMoved struct{ said string }

func (e errNotMoved) Error() string { return e.said }

// move runs the program's command move for one proxy, and returns its output.
func (r *rig) move(proxy int, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Patience)
	defer cancel()
	return r.moveUntil(ctx, proxy, flags...)
}

func (r *rig) moveUntil(ctx context.Context, proxy int, flags ...string) (string, error) {
	program, err := harness.BuildProxy(ctx)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, append([]string{"move", "--addr", r.addrs[proxy]},
		flags...)...).CombinedOutput()
	var code *exec.ExitError
	if errors.As(err, &code) {
		err = errNotMoved{strings.TrimSpace(string(out))}
	}
	return string(out), err
}

// mustMove moves the locks, and returns the output. A failure ends the test.
func (r *rig) mustMove(proxy int, flags ...string) string {
	r.t.Helper()
	out, err := r.move(proxy, flags...)
	if err != nil {
		r.t.Fatalf("move %v: %v", flags, err)
	}
	return out
}

// wantRefused fails the test unless a move is refused for the given reason.
func (r *rig) wantRefused(proxy int, why string, flags ...string) {
	r.t.Helper()
	out, err := r.move(proxy, flags...)
	if err == nil || !strings.Contains(err.Error(), why) {
		r.t.Fatalf("move %v: got %q, %v; want %q", flags, out, err, why)
	}
}

// atUpstream returns the lock keys at the upstream, of all databases.
func (r *rig) atUpstream() []string {
	r.t.Helper()
	var all []string
	for _, db := range []string{"0", "3"} {
		reply, err := kit.AskIn(r.upstream, db, "KEYS", "lock:*")
		kit.Must(r.t, err)
		for _, key := range reply.([]any) {
			all = append(all, key.(string))
		}
	}
	return all
}

// atMasters returns the lock keys that a majority of the masters hold.
func (r *rig) atMasters(pattern string) []string {
	r.t.Helper()
	held := map[string]int{}
	for _, master := range r.masters {
		for _, db := range []string{"0", "3"} {
			reply, err := kit.AskIn(master, db, "KEYS", pattern)
			kit.Must(r.t, err)
			for _, key := range reply.([]any) {
				value, err := kit.AskIn(master, db, "GET", key.(string))
				kit.Must(r.t, err)
				if harness.Held(value) != nil {
					held[key.(string)]++
				}
			}
		}
	}
	var all []string
	for key, n := range held {
		if n > len(r.masters)/2 {
			all = append(all, key)
		}
	}
	return all
}

// wantOnlyAt returns an error if locks are left where they moved from: at the masters, if back is
// set, otherwise at the upstream.
func (r *rig) wantOnlyAt(back bool) error {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := r.atUpstream()
		if back {
			left = r.atMasters("lock:*")
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d lock keys are left where the locks are not any more: %.300q", len(left), left)
		}
	}
}

// counts returns a map as text, sorted.
func counts(of map[string]int) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, strconv.Itoa(of[key])+" × "+key)
	}
	return strings.Join(all, ", ")
}
