//go:build integration

package guardschedules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
)

// runInit runs redlock-proxy init with the masters' addresses that the proxies use.
func (f *fleet) runInit(t *testing.T, longestTTL time.Duration) (output string, err error) {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	kit.Must(t, err)
	args := []string{"init", "--longest-ttl", longestTTL.String()}
	for _, url := range kit.LinkURLs(f.links) {
		args = append(args, "--master", url)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*kit.WaitLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// TestInitContradictedByProxy flushes all masters. Before the proxy that granted a lock has probed
// them, the operator confirms that no lock is held. The proxy contradicts, and the masters wait
// until the lock has expired.
func TestInitContradictedByProxy(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second
	f := startFleet(t, 1, nil, "--fresh-start")
	l := f.lockOnAll(t, "k", ttl)
	kit.Must(t, f.proxies[0].Pause())
	for _, master := range f.masters {
		mustSend(t, master, "FLUSHALL")
	}
	resume := time.AfterFunc(time.Second/2, func() { _ = f.proxies[0].Continue() })
	defer resume.Stop()
	output, err := f.runInit(t, 0)
	// The masters do not vote at the announced time.
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v: %s", err, output)
	}
	t.Log(output)
	rival := kit.Connect(t, f.startProxy(t, "--fresh-start=false"))
	l.wantRefused(t, rival, ttl)
	l.wantFree(t, rival)
}

// TestShorterTTLOnRemainingMasters cuts off D and E. A, B and C record a TTL of a minute, and grant
// a lock with it. Then A, B and C lose their data, and the only proxy ends. D and E vote, and know
// a TTL of four seconds. A new proxy must not assume that this is the longest TTL in use. It
// reports the TTL that it knows, and that the operator may know more.
func TestShorterTTLOnRemainingMasters(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, nil)
	kit.Do(t, kit.Connect(t, f.proxies[0]), "LOCK", "short", "t", "PX", "4000")
	for _, master := range f.masters[masterD:] {
		kit.Eventually(t, func() error {
			if longest := mustSend(t, master, "GET", "redlock-proxy:longest"); longest != "4096" {
				return fmt.Errorf("the longest TTL there is %v", longest)
			}
			return nil
		})
	}
	f.cutOff(t, masterD, masterE)
	f.wantVoting(t, 3)
	l := f.lock(t, "k", time.Minute)
	kit.Must(t, f.proxies[0].Kill())
	for _, master := range f.masters[:masterD] {
		mustSend(t, master, "FLUSHALL")
	}
	f.reconnect(t, masterD, masterE)
	rival := kit.Connect(t, kit.StartProxy(t, kit.LinkURLs(f.links), "--fresh-start=false"))
	l.wantRefused(t, rival, 8*time.Second)
	text := fmt.Sprint(kit.Do(t, rival, "LOCK", "k", "u", "PX", "1000"))
	for _, part := range []string{"2 of 5 masters vote: 3 ", "(at least 4.096s)", "run redlock-proxy init"} {
		if !strings.Contains(text, part) {
			t.Errorf("got %s, want %q in it", text, part)
		}
	}
}

// TestFreshStartAfterAnotherProxy flushes all masters. A new proxy without --fresh-start probes
// them first and finds them empty; another new proxy has --fresh-start. The proxy that granted a
// lock is paused for a while, and contradicts afterwards.
func TestFreshStartAfterAnotherProxy(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, nil, "--fresh-start")
	l := f.lockOnAll(t, "k", time.Minute)
	kit.Must(t, f.proxies[0].Pause())
	for _, master := range f.masters {
		mustSend(t, master, "FLUSHALL")
	}
	kit.StartProxy(t, kit.LinkURLs(f.links), "--fresh-start=false")
	for _, master := range f.masters {
		if record := fmt.Sprint(mustSend(t, master, "GET", "redlock-proxy:quarantine")); !strings.Contains(record, " blank ") {
			t.Errorf("the record says %s", record)
		}
	}
	resume := time.AfterFunc(time.Second/2, func() { _ = f.proxies[0].Continue() })
	defer resume.Stop()
	rival := kit.Connect(t, f.startProxy(t, "--fresh-start"))
	l.wantRefused(t, rival, 6*time.Second)
}
