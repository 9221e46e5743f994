//go:build integration

package hostile

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/process"
)

// attackerAddrsEnv and attackerKindsEnv name the environment variables for the process with the
// hostile clients. The variables contain the addresses to attack, and the names of the attacks.
const (
	attackerAddrsEnv = "HOSTILE_ADDRS"
	attackerKindsEnv = "HOSTILE_KINDS"
)

// processTimeout ends the wait for the process with the hostile clients, whose priority is the
// lowest.
const processTimeout = 10 * time.Minute

func TestMain(m *testing.M) {
	if addrs := os.Getenv(attackerAddrsEnv); addrs != "" {
		runAttackers(strings.Split(addrs, ","), os.Getenv(attackerKindsEnv))
		return
	}
	kit.Main(m)
}

// attacksNamed returns the attacks with the given comma-separated names; "" means all hostile
// attacks. The names may include harmless clients.
func attacksNamed(names string) ([]*attack, error) {
	if names == "" {
		return attacks(), nil
	}
	var list []*attack
	all := append(attacks(), harmlessAttacks()...)
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(a *attack) bool { return a.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no kind %q of hostile client", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

// attackers is a process with hostile or harmless clients. The process has the lowest priority,
// because real hostile clients use no CPU time of the proxy's machine. The honest clients are in
// the process of the test, so that both kinds of clients do not share a Go runtime.
type attackers struct{ process *process.Process }

func startAttackers(names string, addrs ...string) (*attackers, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := process.Start("nice", []string{"-n", "19", path}, append(os.Environ(),
		attackerAddrsEnv+"="+strings.Join(addrs, ","), attackerKindsEnv+"="+names))
	if err == nil {
		_, err = p.WaitLine(func(line string) bool { return strings.HasPrefix(line, attacksPrefix) }, processTimeout)
	}
	return &attackers{p}, err
}

// attacksPrefix is the line that the process prints just before its attacks begin.
const attacksPrefix = "attacks: "

// stop ends the attacks, and returns the output of the process: the number of rounds of each
// attack.
func (a *attackers) stop() (string, error) {
	if err := a.process.Signal(syscall.SIGTERM); err != nil {
		return a.process.Log(), err
	}
	code, err := a.process.Wait(processTimeout)
	if err == nil && code != 0 {
		err = fmt.Errorf("the hostile clients ended with %d", code)
	}
	return strings.TrimSpace(a.process.Log()), err
}

// runAttackers is the main function of the process with the hostile clients.
func runAttackers(addrs []string, names string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	chosen, err := attacksNamed(names)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(attacksPrefix)
	var workers sync.WaitGroup
	for i := range chosen {
		for n := range chosen[i].clients {
			workers.Go(func() { attackUntil(ctx, chosen[i], addrs[n%len(addrs)]) })
		}
	}
	workers.Wait()
	for i := range chosen {
		fmt.Printf("%s %d, ", chosen[i].name, chosen[i].rounds.Load())
	}
}
