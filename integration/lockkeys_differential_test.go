//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
)

const (
	// stepsEnv sets how many commands TestSameAsOneRedis compares in each protocol.
	stepsEnv = "REDLOCK_STEPS"
	// defaultSteps take some seconds on two busy cores.
	defaultSteps = 4000

	scriptCount     = 150
	mostDifferences = 10
)

// TestSameAsOneRedis: random commands, transactions and scripts about two lock keys have, byte for byte, the replies through the
// proxy that a single Redis gives. Only remaining times may differ a little.
func TestSameAsOneRedis(t *testing.T) {
	steps, seed := int(numberFrom(t, stepsEnv, defaultSteps)), numberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d commands in each protocol (%s); seed %d (%s)", steps, stepsEnv, seed, seedEnv)
	args := append(lockKeyArgs(startRedis(t)), patientMasters()...)
	proxy, single := startProxy(t, harness.URLs(startMasters(t)), args...), startRedis(t)
	for _, resp := range []string{"2", "3"} {
		t.Run("RESP"+resp, func(t *testing.T) {
			p := startPair(t, proxy.Addr(), single.Addr(), resp)
			differences := p.compare(t, seed, steps)
			if len(differences) > 0 {
				t.Errorf("%d DIFFERENCES (it stops at %d):\n%s", len(differences), mostDifferences, strings.Join(differences, "\n"))
			}
		})
	}
}

// TestSameAsOneRedisSees: two Redises do not differ, until somebody writes to one of them.
func TestSameAsOneRedisSees(t *testing.T) {
	one, other, seed := startRedis(t), startRedis(t), rand.Uint64()
	for _, resp := range []string{"2", "3"} {
		p := startPair(t, one.Addr(), other.Addr(), resp)
		p.alwaysTheirs = true
		if differences := p.compare(t, seed, 3000); len(differences) > 0 {
			t.Fatalf("seed %d: two Redises differ: %s", seed, differences[0])
		}
	}
	p := startPair(t, one.Addr(), other.Addr(), "2")
	p.alwaysTheirs = true
	meddler, err := harness.Dial(one.Addr(), patience)
	must(t, err)
	defer meddler.Close()
	p.between = func() { do(t, meddler, "SET", lockKeyNames()[0], "of nobody") }
	if len(p.compare(t, seed, 100)) == 0 {
		t.Error("no difference was found: TestSameAsOneRedis shows nothing")
	}
}

func lockKeyNames() []string { return []string{"lock:a", "lock:{b}:\xff"} }

// compare has a conversation of so many commands, and describes the replies that differ. After such a one it begins afresh.
func (p *pair) compare(t *testing.T, seed uint64, steps int) (differences []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(p.resp[0])))
	k := &talker{random: random, keys: lockKeyNames(), scripts: luaScripts(random, scriptCount)}
	must(t, p.afresh(k.keys))
	for sent := 0; sent < steps && len(differences) < mostDifferences; {
		if p.between != nil {
			p.between()
		}
		group := k.steps()
		difference, err := p.differ(group)
		must(t, err)
		sent += len(group)
		if difference != "" {
			differences = append(differences, difference)
			must(t, p.afresh(k.keys))
		}
	}
	return differences
}

// differ sends commands that belong together, up to the first whose replies differ.
func (p *pair) differ(group []step) (string, error) {
	for _, s := range group {
		answers, err := p.ask(s)
		if err != nil {
			return "", err
		}
		if !alike(answers[0], answers[1], s.times) {
			return fmt.Sprintf("%q\n  got  %q\n  want %q\nafter\n%s", s.words, answers[0].raw, answers[1].raw, p.recent(12)), nil
		}
	}
	return "", nil
}
