//go:build integration

package guardschedules

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// masterA to masterE are the indexes of the masters, by the names that the schedules use.
// masterCount is the number of masters.
const (
	masterA = iota
	masterB
	masterC
	masterD
	masterE
	masterCount
)

func TestMain(m *testing.M) { kit.MainParallel(m, 4) }

// fleet holds five masters and their proxies. All proxies share one link to each master, so that
// they have the same list of masters.
type fleet struct {
	masters       []*redistest.Server
	links         []*faultlink.Link
	proxies       []*harness.Proxy
	statusClients []*redistest.Client // one for each proxy
}

// startFleet starts five masters, with options for some of them, and proxies, and waits until all
// masters vote. All servers stop when the test ends.
func startFleet(t *testing.T, proxies int, options map[int]redistest.Options, args ...string) *fleet {
	t.Helper()
	f := startMasters(t, options)
	for range proxies {
		f.startProxy(t, args...)
	}
	f.wantVoting(t, masterCount)
	return f
}

// startMasters starts a fleet without proxies. Only make test-all runs all schedules.
func startMasters(t *testing.T, options map[int]redistest.Options) *fleet {
	t.Helper()
	redistest.SkipShort(t)
	f := &fleet{}
	for i := range masterCount {
		f.masters = append(f.masters, redistest.New(t, options[i]))
		f.links = append(f.links, kit.StartLink(t, f.masters[i]))
	}
	return f
}

// optionsFor returns options for one master.
func optionsFor(master int, options redistest.Options) map[int]redistest.Options {
	return map[int]redistest.Options{master: options}
}

// optionsForAll returns the same options for all masters.
func optionsForAll(options redistest.Options) map[int]redistest.Options {
	byMaster := map[int]redistest.Options{}
	for i := range masterCount {
		byMaster[i] = options
	}
	return byMaster
}

// startProxy starts one more proxy for all masters.
func (f *fleet) startProxy(t *testing.T, args ...string) *harness.Proxy {
	t.Helper()
	proxy := kit.StartProxy(t, kit.LinkURLs(f.links), args...)
	f.proxies = append(f.proxies, proxy)
	f.statusClients = append(f.statusClients, kit.Connect(t, proxy))
	return proxy
}

// cutOff makes masters unreachable. Messages on their way are lost.
func (f *fleet) cutOff(t *testing.T, masters ...int) {
	t.Helper()
	for _, i := range masters {
		kit.Must(t, f.links[i].Refuse())
	}
}

// reconnect undoes cutOff.
func (f *fleet) reconnect(t *testing.T, masters ...int) {
	t.Helper()
	for _, i := range masters {
		kit.Must(t, f.links[i].Heal())
	}
}

// wantVoting waits until every proxy sees n masters vote.
func (f *fleet) wantVoting(t *testing.T, n int) {
	t.Helper()
	for _, client := range f.statusClients {
		wantVotingAt(t, client, n)
	}
}

// wantVotingAt waits until one proxy sees n masters vote.
func wantVotingAt(t *testing.T, client *redistest.Client, n int) {
	t.Helper()
	kit.Eventually(t, func() error {
		if voting := votingCount(t, client); voting != n {
			return fmt.Errorf("%d masters vote, want %d: %v", voting, n, kit.Do(t, client, "PROXY", "INFO"))
		}
		return nil
	})
}

// votingCount returns the number of masters that a proxy sees vote.
func votingCount(t *testing.T, client *redistest.Client) (n int) {
	t.Helper()
	const name = "redlock_masters_voting:"
	for line := range strings.Lines(fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))) {
		if text, found := strings.CutPrefix(line, name); found {
			_, err := fmt.Sscan(text, &n)
			kit.Must(t, err)
			return n
		}
	}
	t.Fatalf("no %s in PROXY INFO", name)
	return 0
}

// awaitProbe waits until the proxies have just probed a master, so that the next probe is not due
// soon.
func (f *fleet) awaitProbe(t *testing.T, master int) {
	t.Helper()
	const silence = 60 * time.Millisecond
	monitor, err := redistest.Dial(f.masters[master].Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer monitor.Close()
	kit.Want(t, monitor, "OK", "MONITOR")
	_, err = monitor.Receive()
	kit.Must(t, err)
	monitor.SetTimeout(silence)
	for err == nil {
		_, err = monitor.Receive()
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

// mustSend sends a command directly to a server, and fails the test on an error.
func mustSend(t *testing.T, server *redistest.Server, command ...string) any {
	t.Helper()
	reply, err := kit.QueryDatabase(server, "0", command...)
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return reply
}
