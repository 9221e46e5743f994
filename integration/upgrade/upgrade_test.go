//go:build integration && history

package upgrade

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// roundsEnv sets the number of rounds with each version.
const roundsEnv = "REDLOCK_UPGRADES"

// earlierProtocols holds the last commit of each earlier protocol (guard.Proxy.Protocol). Protocol 2
// is that of version 0.3.0.
var earlierProtocols = []struct{ name, commit string }{
	{"protocol 0", "afe1ec79"},
	{"protocol 1", "9e3fb4f0"},
	{"protocol 2", "ec08b84c"},
}

// buildCommit builds the program of a commit.
func buildCommit(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, dir)
	archive.Dir = "../.."
	out, err := archive.CombinedOutput()
	if _, is := os.Stat(filepath.Join(dir, "main.go")); err != nil || is != nil {
		t.Fatalf("commit %s is not to be had: %v\n%s", commit, err, out)
	}
	program := filepath.Join(dir, "redlock-proxy")
	compile := exec.Command("go", "build", "-o", program, ".")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("commit %s: %v\n%s", commit, err, out)
	}
	return program
}

// TestRollingUpgrades replaces two proxies of an earlier version by current proxies in turn, and
// back, while clients lock through both. It checks that no lock is lost or held twice. If no master
// is disturbed, no client gets an error reply, such as NOQUORUM.
func TestRollingUpgrades(t *testing.T) {
	rounds, seed := int(kit.NumberFrom(t, roundsEnv, 3)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d rounds (%s); seed %d (%s)", rounds, roundsEnv, seed, kit.SeedEnv)
	for _, version := range earlierProtocols {
		t.Run(version.name, func(t *testing.T) {
			r := startRig(t, buildCommit(t, version.commit), seed, "")
			for n := range rounds {
				r.runRound(n)
			}
			r.stop()
		})
	}
}

// replaceProxy replaces a proxy by another version: the old proxy drains, or is killed.
func (r *rig) replaceProxy(i int, program string, kill bool) {
	r.t.Helper()
	if kill {
		kit.Must(r.t, r.proxies[i].Close())
	} else {
		kit.Must(r.t, r.proxies[i].Signal(syscall.SIGTERM))
		_, err := r.proxies[i].Wait(time.Minute)
		kit.Must(r.t, err)
	}
	if log := r.proxies[i].Log(); strings.Contains(log, "panic: ") {
		r.t.Errorf("an accident:\n%s", log)
	}
	r.startProxy(i, program)
}

// runRound upgrades and downgrades both proxies. In every second round, a master is down during the
// upgrades.
func (r *rig) runRound(n int) {
	r.t.Helper()
	fault := []string{"", "a master is stopped", "", "a master is killed"}[n%4]
	master := r.masters[r.random.IntN(len(r.masters))]
	r.clearErrorReplies()
	end := func() error { return nil }
	switch n % 4 {
	case 1:
		kit.Must(r.t, master.Pause())
		end = master.Continue
	case 3:
		kit.Must(r.t, master.Kill())
		end = master.RestartWithData
	}
	first, last := r.random.IntN(2), 0
	now, err := harness.BuildProxy(r.t.Context())
	kit.Must(r.t, err)
	for step, program := range []string{now, now, r.oldProgram, r.oldProgram} {
		last = (first + step) % 2
		r.replaceProxy(last, program, fault != "" && r.random.IntN(2) == 0)
		time.Sleep(time.Duration(r.random.Int64N(int64(lockTTL)))) // clients keep running
		if step == 1 {
			kit.Must(r.t, end())
		}
	}
	r.wantNoLoss(fmt.Sprint("round ", n), fault == "")
}
